#include <cstdio>
__global__ void k(float* a) { a[threadIdx.x] += 1; }
void fill(float* a) { __shared__ float t[32]; for (int i = 0; i < 32; i++) t[i] = i; for (int i = 0; i < 32; i++) a[i] = t[i]; __syncthreads(); }
int main() { float* a; cudaMallocManaged(&a, 128); fill(a); k<<<1, 32>>>(a); cudaDeviceSynchronize(); printf("%g\n", a[3]); cudaFree(a); }
