// shared counter cleared by thread 0, no barrier before the others add
#include <cstdio>
__global__ void k(const int* a, int* o) { __shared__ int c; if (threadIdx.x == 0) c = 0; if (a[blockIdx.x * 64 + threadIdx.x] > 0) atomicAdd(&c, 1); __syncthreads(); if (threadIdx.x == 0) o[blockIdx.x] = c; }
int main() { int *a, *o; cudaMallocManaged(&a, 1024); cudaMallocManaged(&o, 16); for (int i = 0; i < 256; i++) a[i] = 1; k<<<4, 64>>>(a, o); cudaDeviceSynchronize(); printf("%d\n", o[0]); cudaFree(a); cudaFree(o); }
