// right: cudaDeviceReset at the end frees everything, no leak to be named
#include <cstdio>
__global__ void k(float* a) { a[threadIdx.x] = 1; }
int main() { float *a, h; cudaMalloc(&a, 128); k<<<1, 32>>>(a); cudaMemcpy(&h, a, 4, cudaMemcpyDeviceToHost); printf("%g\n", h); cudaDeviceReset(); }
