// dst and src swapped with matching kind; copy to a const host string
#include <cstdio>
__global__ void k(float* a) { a[threadIdx.x] = 4; }
int main() { float h[32] = {}, *a; cudaMalloc(&a, 128); k<<<1, 32>>>(a); cudaMemcpy(a, h, 128, cudaMemcpyHostToDevice); cudaMemcpyAsync(h, a, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[3]); cudaMemcpy(h, a, 128, cudaMemcpyHostToDevice); cudaFree(a); }
