// address of a device variable taken by host code with &, passed to a kernel; constant array passed by name
#include <cstdio>
__device__ int counter; __constant__ float coef[4];
__global__ void k(int* c, const float* w, float* o) { atomicAdd(c, 1); o[threadIdx.x] = w[threadIdx.x & 3]; }
int main() { float h[4] = {1, 2, 3, 4}, *o; cudaMemcpyToSymbol(coef, h, sizeof h); cudaMallocManaged(&o, 128); k<<<1, 32>>>(&counter, coef, o); cudaDeviceSynchronize(); int c; cudaMemcpyFromSymbol(&c, counter, 4); printf("%d %g\n", c, o[1]); cudaFree(o); }
