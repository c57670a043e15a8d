#include <cstdio>
__global__ void k(int* data, int* flag, int* out) { int t = threadIdx.x; __syncthreads(); __syncthreads(); if (blockIdx.x == 0) { if (t >= 32) data[t] = t; if (t == 0) { __threadfence(); atomicExch(flag, 1); } } else { if (t == 0) { while (atomicAdd(flag, 0) == 0) {} __threadfence(); } __syncthreads(); if (t >= 32) out[t] = data[t]; } }
int main() { int *d, *f, *o; cudaMalloc(&d, 1024); cudaMalloc(&f, 4); cudaMallocManaged(&o, 1024); cudaMemset(f, 0, 4); k<<<2, 256>>>(d, f, o); cudaDeviceSynchronize(); printf("%d\n", o[60]); cudaFree(d); cudaFree(f); cudaFree(o); }
