// a sharpened pixel is not clamped before the cast: a GPU saturates a negative number to 0, an x86 wraps around
#include <cstdio>
__global__ void sharpen(const unsigned char* a, unsigned char* o, int n) { int i = threadIdx.x; if (i < 1 || i >= n - 1) return; float v = 5.0f * a[i] - 2.0f * a[i - 1] - 2.0f * a[i + 1]; o[i] = (unsigned char)v; }
int main() { unsigned char h[64], *a, *o; for (int i = 0; i < 64; i++) h[i] = i % 2 ? 100 : 10; cudaMalloc(&a, 64); cudaMalloc(&o, 64); cudaMemset(o, 0, 64); cudaMemcpy(a, h, 64, cudaMemcpyHostToDevice); sharpen<<<1, 64>>>(a, o, 64);
  cudaMemcpy(h, o, 64, cudaMemcpyDeviceToHost); printf("%d %d\n", h[1], h[2]); cudaFree(a); cudaFree(o); }
