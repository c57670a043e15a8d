#include <cstdio>
struct Ticket { unsigned next, serving; };
__device__ Ticket lock;
__global__ void k(int* hist, int* log) { __shared__ int my; if (threadIdx.x == 0) { unsigned t = atomicAdd(&lock.next, 1); while (atomicAdd(&lock.serving, 0) != t) {} __threadfence(); my = log[0]; } __syncthreads(); hist[threadIdx.x] += my; __threadfence(); __syncthreads(); if (threadIdx.x == 0) { log[0] = my + 1; __threadfence(); atomicAdd(&lock.serving, 1); } }
int main() { int *h, *l; cudaMallocManaged(&h, 256); cudaMallocManaged(&l, 4); for (int i = 0; i < 64; i++) h[i] = 0; *l = 1; k<<<10, 64>>>(h, l); cudaDeviceSynchronize(); printf("%d %d\n", h[5], *l); cudaFree(h); cudaFree(l); }
