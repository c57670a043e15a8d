// __device__ and __constant__ variables inside functions: nvcc refuses
#include <cstdio>
__global__ void k(float* a) { __constant__ float w[2] = {1, 2}; a[threadIdx.x] *= w[threadIdx.x & 1]; }
int main() { float* a; cudaMallocManaged(&a, 128); for (int i = 0; i < 32; i++) a[i] = i; k<<<1, 32>>>(a); cudaDeviceSynchronize(); printf("%g\n", a[3]); cudaFree(a); }
