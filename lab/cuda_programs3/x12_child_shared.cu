// a pointer to shared memory is given to a child kernel (-rdc=true): illegal
#include <cstdio>
__global__ void child(int* p, int* o) { o[threadIdx.x] = p[threadIdx.x] + 1; }
__global__ void parent(int* o) { __shared__ int s[32]; s[threadIdx.x] = threadIdx.x; __syncthreads(); if (threadIdx.x == 0) child<<<1, 32>>>(s, o); }
int main() { int *o, h[32]; cudaMalloc(&o, 128); parent<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", h[2]); cudaFree(o); }
