#include <cstdio>
__global__ void scale(float* a, int n) { for (int i = 0; i < n; i++) a[i] *= 2; }
int main() { float* a; cudaMallocManaged(&a, 128); for (int i = 0; i < 32; i++) a[i] = i; scale(a, 32); cudaDeviceSynchronize(); printf("%g\n", a[3]); cudaFree(a); }
