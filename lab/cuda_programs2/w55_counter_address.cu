// &counter of a __device__ variable in host code, given to a kernel
#include <cstdio>
__device__ int counter;
__global__ void k(int* c) { atomicAdd(c, 1); }
int main() { int c = 0; cudaMemcpyToSymbol(counter, &c, 4); k<<<1, 32>>>(&counter); cudaDeviceSynchronize(); cudaMemcpyFromSymbol(&c, counter, 4); printf("%d %s\n", c, cudaGetErrorString(cudaGetLastError())); }
