// cudaDeviceReset in the middle, the old buffer used by a kernel and freed after it
#include <cstdio>
__global__ void k(float* a) { a[threadIdx.x] += 1; }
int main() { float *a, h[32] = {}; cudaMalloc(&a, 128); cudaMemcpy(a, h, 128, cudaMemcpyHostToDevice); cudaDeviceReset(); k<<<1, 32>>>(a); cudaMemcpy(h, a, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[3]); cudaFree(a); }
