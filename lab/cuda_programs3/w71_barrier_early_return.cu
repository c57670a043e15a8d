// cuda::barrier for all threads, some of which return before
#include <cstdio>
#include <cuda/barrier>
#include <cooperative_groups.h>
__global__ void k(int* o, int n) { __shared__ cuda::barrier<cuda::thread_scope_block> b; if (threadIdx.x == 0) init(&b, blockDim.x); __syncthreads(); if (threadIdx.x >= n) return; b.arrive_and_wait(); o[threadIdx.x] = 1; }
int main() { int *o, h[64]; cudaMalloc(&o, 256); cudaMemset(o, 0, 256); k<<<1, 64>>>(o, 50); printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize())); cudaFree(o); }
