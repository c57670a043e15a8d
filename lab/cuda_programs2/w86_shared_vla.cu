#include <cstdio>
__global__ void k(int* a, int n) { __shared__ int s[n]; s[threadIdx.x] = a[threadIdx.x]; __syncthreads(); a[threadIdx.x] = s[n - 1 - threadIdx.x]; }
int main() { int* a; cudaMallocManaged(&a, 128); for (int i = 0; i < 32; i++) a[i] = i; k<<<1, 32>>>(a, 32); cudaDeviceSynchronize(); printf("%d\n", a[3]); cudaFree(a); }
