// warpSize is no constant: nvcc refuses
#include <cstdio>
__global__ void sum(const float* a, float* o) { __shared__ float s[warpSize]; s[threadIdx.x] = a[threadIdx.x]; __syncthreads(); if (!threadIdx.x) { float t = 0; for (int i = 0; i < warpSize; i++) t += s[i]; *o = t; } }
int main() { float h[32]; for (auto& x : h) x = 1; float *a, *o, r; cudaMalloc(&a, sizeof h); cudaMalloc(&o, 4); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice);
  sum<<<1, 32>>>(a, o); cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%g\n", r); cudaFree(a); cudaFree(o); }
