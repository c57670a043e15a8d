// ceil(n / 256) of integers: the last elements are never calculated
#include <cstdio>
#include <cmath>
__global__ void k(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 1; }
int main() { const int n = 1000; static float h[n]; float* a; cudaMalloc(&a, n * 4); k<<<ceil(n / 256), 256>>>(a, n); cudaMemcpy(h, a, n * 4, cudaMemcpyDeviceToHost); float s = 0; for (float x : h) s += x; printf("%g\n", s); cudaFree(a); }
