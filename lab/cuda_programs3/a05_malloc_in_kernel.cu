// cudaMalloc and cudaMemcpy in a kernel
#include <cstdio>
__global__ void k(float* o) { float* t; cudaMalloc(&t, 128); t[threadIdx.x] = 1; cudaMemcpy(o, t, 128, cudaMemcpyDeviceToDevice); }
int main() { float *o, h[32]; cudaMalloc(&o, 128); k<<<1, 1>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cudaFree(o); }
