// cudaLaunchKernel with an int where the kernel has a size_t
#include <cstdio>
__global__ void k(float* a, size_t n, float s) { size_t i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] *= s; }
int main() { float* a; int n = 64; float s = 2; cudaMallocManaged(&a, 256); for (int i = 0; i < 64; i++) a[i] = i; void* args[] = {&a, &n, &s}; cudaLaunchKernel((void*)k, dim3(1), dim3(64), args, 0, 0); cudaDeviceSynchronize(); printf("%g\n", a[5]); cudaFree(a); }
