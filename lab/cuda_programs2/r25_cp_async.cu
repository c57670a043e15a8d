#include <cstdio>
#include <cuda_pipeline.h>
__global__ void k(const float4* in, float* out, int n) { __shared__ float4 buf[2][32]; int t = threadIdx.x; float v = 0; __pipeline_memcpy_async(&buf[0][t], in + t, 16); __pipeline_commit();
  for (int s = 0; s < n; s++) { if (s + 1 < n) __pipeline_memcpy_async(&buf[(s + 1) & 1][t], in + (s + 1) * 32 + t, 16); __pipeline_commit(); __pipeline_wait_prior(1); __syncthreads(); float4 q = buf[s & 1][31 - t]; v += q.x + q.y + q.z + q.w; __syncthreads(); } __pipeline_wait_prior(0); out[t] = v; }
int main() { const int n = 5; float4* a; float* o; cudaMallocManaged(&a, n * 32 * 16); cudaMallocManaged(&o, 128); for (int i = 0; i < n * 32; i++) a[i] = make_float4(i, 0, 0, 1); k<<<1, 32>>>(a, o, n); cudaDeviceSynchronize(); printf("%g\n", o[0]); cudaFree(a); cudaFree(o); }
