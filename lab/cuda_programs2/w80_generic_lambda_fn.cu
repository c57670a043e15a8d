// host lambda returns a device function; a static local table
#include <cstdio>
typedef int (*fn)(int);
__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
__global__ void k(int* a, fn f) { a[threadIdx.x] = f(threadIdx.x); }
int main() { int* a; cudaMallocManaged(&a, 128); auto pick = [](bool s) -> fn { return s ? square : twice; }; static const fn t[] = {twice, square}; k<<<1, 32>>>(a, pick(a != nullptr)); cudaDeviceSynchronize(); printf("%d %p\n", a[5], (void*)t[0]); cudaFree(a); }
