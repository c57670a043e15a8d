// producer right; in the consumer only thread 0 waits and there is no barrier behind
#include <cstdio>
__global__ void k(int* data, int* flag, int* out) { int t = threadIdx.x; if (blockIdx.x == 0) { data[t] = t; __threadfence(); __syncthreads(); if (t == 0) atomicExch(flag, 1); } else { if (t == 0) { while (atomicAdd(flag, 0) == 0) {} __threadfence(); } out[t] = data[255 - t]; } }
int main() { int *d, *f, *o; cudaMalloc(&d, 1024); cudaMalloc(&f, 4); cudaMallocManaged(&o, 1024); cudaMemset(f, 0, 4); k<<<2, 256>>>(d, f, o); cudaDeviceSynchronize(); printf("%d\n", o[6]); cudaFree(d); cudaFree(f); cudaFree(o); }
