// function pointer as a template argument of a host function, which passes it on as a value
#include <cstdio>
typedef int (*fn)(int);
__device__ int twice(int x) { return 2 * x; }
__global__ void k(int* a, fn f) { a[threadIdx.x] = f(threadIdx.x); }
template <fn F> void run(int* a) { k<<<1, 32>>>(a, F); }
int main() { int* a; cudaMallocManaged(&a, 128); run<twice>(a); cudaDeviceSynchronize(); printf("%d\n", a[5]); cudaFree(a); }
