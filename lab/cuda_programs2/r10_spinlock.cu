#include <cstdio>
struct Lock { int* m; __device__ void lock() { while (atomicCAS(m, 0, 1) != 0) __nanosleep(20); __threadfence(); } __device__ void unlock() { __threadfence(); atomicExch(m, 0); } };
__global__ void dot(const float* a, const float* b, int n, Lock l, float* c) { __shared__ float s[64]; int t = threadIdx.x; float v = 0; for (int i = blockIdx.x * 64 + t; i < n; i += gridDim.x * 64) v += a[i] * b[i]; s[t] = v; __syncthreads();
  for (int k = 32; k; k /= 2) { if (t < k) s[t] += s[t + k]; __syncthreads(); } if (t == 0) { l.lock(); *c += s[0]; l.unlock(); } }
int main() { const int n = 3000; float *a, *c; Lock l; cudaMallocManaged(&a, n * 4); cudaMalloc(&c, 4); cudaMalloc(&l.m, 4); cudaMemset(c, 0, 4); cudaMemset(l.m, 0, 4); for (int i = 0; i < n; i++) a[i] = 1; dot<<<10, 64>>>(a, a, n, l, c); float h; cudaMemcpy(&h, c, 4, cudaMemcpyDeviceToHost); printf("%g\n", h); cudaFree(a); cudaFree(c); cudaFree(l.m); }
