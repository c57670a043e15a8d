// cudaLaunchKernel with the pointer itself, not its address
#include <cstdio>
__global__ void k(float* a, int n) { if (threadIdx.x < n) a[threadIdx.x] = 1; }
int main() { int n = 32; float *a, h[32]; cudaMalloc(&a, 128); void* args[] = {a, &n}; cudaLaunchKernel((const void*)k, dim3(1), dim3(32), args, 0, 0); cudaMemcpy(h, a, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cudaFree(a); }
