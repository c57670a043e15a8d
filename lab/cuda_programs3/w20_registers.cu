// 1024 threads of a kernel with more than 64 registers: a GPU refuses the launch
#include <cstdio>
template <int N> __global__ void poly(const float* a, float* o, int n) { float r[N]; 
#pragma unroll
  for (int i = 0; i < N; i++) r[i] = a[(threadIdx.x + i * 7) % n];
  for (int t = 0; t < 16; t++) {
#pragma unroll
    for (int i = 0; i < N; i++) r[i] = r[i] * r[(i + 1) % N] + r[(i * 5 + 3) % N]; }
  float s = 0;
#pragma unroll
  for (int i = 0; i < N; i++) s += r[i]; o[blockIdx.x * blockDim.x + threadIdx.x] = s; }
int main() { float *a, *o, h[1024]; for (auto& x : h) x = .5f; cudaMalloc(&a, 4096); cudaMalloc(&o, 4096); cudaMemcpy(a, h, 4096, cudaMemcpyHostToDevice); poly<96><<<1, 1024>>>(a, o, 1024);
  cudaMemcpy(h, o, 4096, cudaMemcpyDeviceToHost); printf("%g\n", h[5]); cudaFree(a); cudaFree(o); }
