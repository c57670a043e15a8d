// right: byte counters in words of shared memory, atomics on the words, bytes read behind a barrier
#include <cstdio>
__global__ void k(const unsigned char* a, int* o) { __shared__ unsigned w[16]; if (threadIdx.x < 16) w[threadIdx.x] = 0; __syncthreads(); int b = a[threadIdx.x] % 64; atomicAdd(&w[b / 4], 1u << (b % 4 * 8)); __syncthreads(); if (threadIdx.x < 64) o[threadIdx.x] = ((unsigned char*)w)[threadIdx.x]; }
int main() { unsigned char h[128], *a; int *o, r[64]; for (int i = 0; i < 128; i++) h[i] = i * 3; cudaMalloc(&a, 128); cudaMalloc(&o, 256); cudaMemcpy(a, h, 128, cudaMemcpyHostToDevice); k<<<1, 128>>>(a, o); cudaMemcpy(r, o, 256, cudaMemcpyDeviceToHost); int s = 0; for (int x : r) s += x; printf("%d\n", s); cudaFree(a); cudaFree(o); }
