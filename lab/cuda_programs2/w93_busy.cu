// block 0 raises a plain flag while it works and lowers it again; other blocks look at it to choose what they do
#include <cstdio>
__global__ void k(int* busy, const float* a, float* o) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (blockIdx.x == 0) { if (threadIdx.x == 0) *busy = 1; __syncthreads(); o[i] = a[i] * 2; __syncthreads(); if (threadIdx.x == 0) *busy = 0; } else o[i] = *busy == 1 ? a[i] : -a[i]; }
int main() { int* b; float *a, *o; cudaMallocManaged(&b, 4); cudaMallocManaged(&a, 1024); cudaMallocManaged(&o, 1024); *b = 0; for (int i = 0; i < 256; i++) a[i] = i; k<<<4, 64>>>(b, a, o); cudaDeviceSynchronize(); printf("%g\n", o[100]); cudaFree(b); cudaFree(a); cudaFree(o); }
