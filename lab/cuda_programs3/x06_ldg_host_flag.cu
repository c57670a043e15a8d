// occupancy-style persistent loop: work index read plainly while others add atomically
#include <cstdio>
__device__ int next = 0;
__global__ void k(int* o, int n) { while (next < n) { int i = atomicAdd(&next, 1); if (i < n) o[i] = i; } }
int main() { int n = 1000, *o; cudaMalloc(&o, 4000); k<<<4, 64>>>(o, n); int h; cudaMemcpy(&h, o + 999, 4, cudaMemcpyDeviceToHost); printf("%d\n", h); cudaFree(o); }
