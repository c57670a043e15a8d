// 1D convolution; the mask is a __constant__ array and handed to the kernel as an argument
#include <cstdio>
__constant__ float mask[5];
__global__ void conv(const float* a, float* o, const float* m, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; float s = 0; for (int j = -2; j <= 2; j++) if (i + j >= 0 && i + j < n) s += a[i + j] * m[j + 2]; o[i] = s; }
int main() { const int n = 256; float h[5] = {1, 2, 3, 2, 1}, *a, *o; cudaMemcpyToSymbol(mask, h, sizeof h); cudaMallocManaged(&a, n * 4); cudaMallocManaged(&o, n * 4); for (int i = 0; i < n; i++) a[i] = 1; conv<<<2, 128>>>(a, o, mask, n); cudaDeviceSynchronize(); printf("%g\n", o[100]); cudaFree(a); cudaFree(o); }
