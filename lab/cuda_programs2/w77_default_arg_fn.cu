// default argument of a host function is a device function
#include <cstdio>
typedef int (*fn)(int);
__device__ int twice(int x) { return 2 * x; }
__global__ void k(int* a, fn f) { a[threadIdx.x] = f(threadIdx.x); }
void run(int* a, fn f = twice) { k<<<1, 32>>>(a, f); }
int main() { int* a; cudaMallocManaged(&a, 128); run(a); cudaDeviceSynchronize(); printf("%d\n", a[5]); cudaFree(a); }
