// the address of a thread's local array given to the others through shared memory: each thread has its own local memory
#include <cstdio>
__global__ void k(const int* in, int* o) { int local[8]; for (int i = 0; i < 8; i++) local[i] = in[threadIdx.x] * 100 + i; __shared__ int* p; if (threadIdx.x == 3) p = local; __syncthreads(); o[threadIdx.x] = p[threadIdx.x % 8]; __syncthreads(); }
int main() { int h[64], *a, *o; for (int i = 0; i < 64; i++) h[i] = i; cudaMalloc(&a, 256); cudaMalloc(&o, 256); cudaMemcpy(a, h, 256, cudaMemcpyHostToDevice); k<<<1, 64>>>(a, o); cudaMemcpy(h, o, 256, cudaMemcpyDeviceToHost); printf("%d %d\n", h[0], h[40]); cudaFree(a); cudaFree(o); }
