// grid-stride loop whose stride forgets gridDim: all blocks do the whole rest
#include <cstdio>
__global__ void scale(float* a, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x) a[i] *= 2.0f; }
int main() { int n = 4096; float* d; float h[4096]; for (int i = 0; i < n; i++) h[i] = 1; cudaMalloc(&d, sizeof h);
  cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice); scale<<<8, 128>>>(d, n); cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  printf("%g %g\n", h[0], h[4095]); cudaFree(d); }
