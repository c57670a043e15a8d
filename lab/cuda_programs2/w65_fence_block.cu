// __threadfence_block() where other blocks read
#include <cstdio>
__device__ unsigned done;
__global__ void k(float* part, float* out) { __shared__ bool last; if (threadIdx.x == 0) { part[blockIdx.x] = blockIdx.x; __threadfence_block(); last = atomicAdd(&done, 1) == gridDim.x - 1; } __syncthreads(); if (last && threadIdx.x == 0) { float s = 0; for (int i = 0; i < gridDim.x; i++) s += part[i]; *out = s; } }
int main() { float *p, *o; cudaMalloc(&p, 64); cudaMallocManaged(&o, 4); k<<<16, 32>>>(p, o); cudaDeviceSynchronize(); printf("%g\n", *o); cudaFree(p); cudaFree(o); }
