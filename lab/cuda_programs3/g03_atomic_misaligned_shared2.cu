// 64-bit atomics behind an odd number of ints in shared memory (cleared as ints)
#include <cstdio>
__global__ void k(unsigned long long* o, int n) { extern __shared__ int raw[]; unsigned long long* best = (unsigned long long*)(raw + n); if (threadIdx.x < n + 2) raw[threadIdx.x] = 0; __syncthreads(); atomicMax(best, (unsigned long long)threadIdx.x); __syncthreads(); if (threadIdx.x == 0) o[0] = (unsigned)raw[n]; }
int main() { unsigned long long *o, r; cudaMalloc(&o, 8); k<<<1, 64, 7 * 4>>>(o, 5); cudaError_t e = cudaMemcpy(&r, o, 8, cudaMemcpyDeviceToHost); printf("%llu %s\n", r, cudaGetErrorString(e)); cudaFree(o); }
