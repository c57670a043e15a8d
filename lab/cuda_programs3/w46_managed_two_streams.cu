// host reads managed memory having waited for one of two streams
#include <cstdio>
__global__ void k(float* a, int n, float v) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = v; }
int main() { int n = 8192; float *a, *b; cudaMallocManaged(&a, n * 4); cudaMallocManaged(&b, n * 4); cudaStream_t s, t; cudaStreamCreate(&s); cudaStreamCreate(&t); k<<<n / 256, 256, 0, s>>>(a, n, 1); k<<<n / 256, 256, 0, t>>>(b, n, 2); cudaStreamSynchronize(s);
  float x = 0; for (int i = 0; i < n; i++) x += a[i] + b[i]; cudaDeviceSynchronize(); printf("%g\n", x); cudaStreamDestroy(s); cudaStreamDestroy(t); cudaFree(a); cudaFree(b); }
