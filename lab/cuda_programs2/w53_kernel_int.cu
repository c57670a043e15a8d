// a kernel that returns int: nvcc refuses
#include <cstdio>
__global__ int k(int* a) { a[threadIdx.x] = threadIdx.x; return 0; }
int main() { int* a; cudaMallocManaged(&a, 128); k<<<1, 32>>>(a); cudaDeviceSynchronize(); printf("%d\n", a[3]); cudaFree(a); }
