// double buffering by __pipeline_memcpy_async: the last stage waits for all but one
#include <cstdio>
#include <cuda_pipeline.h>
__global__ void k(const float* a, float* o, int tiles) { __shared__ float s[2][128]; int t = threadIdx.x; float x = 0;
  __pipeline_memcpy_async(&s[0][t], &a[t], 4); __pipeline_commit();
  for (int i = 0; i < tiles; i++) { if (i + 1 < tiles) { __pipeline_memcpy_async(&s[(i + 1) % 2][t], &a[(i + 1) * 128 + t], 4); __pipeline_commit(); }
    __pipeline_wait_prior(1); __syncthreads(); x += s[i % 2][127 - t]; __syncthreads(); } o[t] = x; }
int main() { float h[512]; for (auto& x : h) x = 1; float *a, *o; cudaMalloc(&a, sizeof h); cudaMalloc(&o, 512); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); k<<<1, 128>>>(a, o, 4);
  cudaMemcpy(h, o, 512, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cudaFree(a); cudaFree(o); }
