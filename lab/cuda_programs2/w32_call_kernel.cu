// a kernel called like a function from a kernel
#include <cstdio>
__global__ void scale(float* a, int n) { int i = threadIdx.x; if (i < n) a[i] *= 2; }
__global__ void both(float* a, int n) { scale(a, n); a[threadIdx.x] += 1; }
int main() { float* a; cudaMallocManaged(&a, 128); for (int i = 0; i < 32; i++) a[i] = i; both<<<1, 32>>>(a, 32); cudaDeviceSynchronize(); printf("%g\n", a[3]); cudaFree(a); }
