// dynamic shared memory asked for in elements, within the granularity of the first ones
#include <cstdio>
__global__ void rev(float* a, int n) { extern __shared__ float s[]; s[threadIdx.x] = a[threadIdx.x]; __syncthreads(); a[threadIdx.x] = s[n - 1 - threadIdx.x]; }
int main() { int n = 64; float h[64] = {1}, *a; cudaMalloc(&a, 256); cudaMemcpy(a, h, 256, cudaMemcpyHostToDevice); rev<<<1, n, n>>>(a, n); cudaMemcpy(h, a, 256, cudaMemcpyDeviceToHost); printf("%g\n", h[63]); cudaFree(a); }
