// block 0 resets the counter "at the end" for the next launch, while others still add
#include <cstdio>
__global__ void k(const int* a, int* c, int* o) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (a[i] > 2) o[atomicAdd(c, 1)] = a[i]; __syncthreads(); if (i == 0) *c = 0; }
int main() { int *a, *o, *c; cudaMallocManaged(&a, 2048); cudaMallocManaged(&o, 2048); cudaMallocManaged(&c, 4); *c = 0; for (int i = 0; i < 512; i++) a[i] = i % 5, o[i] = 0; k<<<4, 128>>>(a, c, o); cudaDeviceSynchronize(); printf("%d\n", o[0]); cudaFree(a); cudaFree(o); cudaFree(c); }
