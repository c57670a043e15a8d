// a program that tests errors on purpose and looks at each
#include <cstdio>
__global__ void k(int* a) { a[threadIdx.x] = 1; }
int main() { int* a = nullptr; cudaError_t e = cudaMalloc(&a, (size_t)1 << 50); printf("%d ", e == cudaErrorMemoryAllocation); cudaGetLastError(); cudaMalloc(&a, 128); k<<<1, 2048>>>(a); e = cudaGetLastError(); printf("%d ", e == cudaErrorInvalidConfiguration); k<<<1, 32>>>(a); e = cudaDeviceSynchronize(); printf("%d\n", e == cudaSuccess); cudaFree(a); }
