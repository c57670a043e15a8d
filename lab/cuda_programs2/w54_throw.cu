// exceptions in device code: nvcc refuses
#include <cstdio>
#include <stdexcept>
__device__ float root(float x) { if (x < 0) throw std::runtime_error("negative"); return sqrtf(x); }
__global__ void k(float* a) { try { a[threadIdx.x] = root(a[threadIdx.x]); } catch (...) { a[threadIdx.x] = -1; } }
int main() { float* a; cudaMallocManaged(&a, 128); for (int i = 0; i < 32; i++) a[i] = i - 4; k<<<1, 32>>>(a); cudaDeviceSynchronize(); printf("%g\n", a[3]); cudaFree(a); }
