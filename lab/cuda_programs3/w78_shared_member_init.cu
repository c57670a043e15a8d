// a shared structure with a default member initialiser (sum = 0): nvcc ignores it (a warning)
#include <cstdio>
struct Stats { float sum = 0; int count = 0; };
__global__ void k(const float* a, float* o) { __shared__ Stats s; atomicAdd(&s.sum, a[threadIdx.x]); atomicAdd(&s.count, 1); __syncthreads(); if (!threadIdx.x) *o = s.sum / s.count; }
int main() { float h[64], *a, *o, r; for (auto& x : h) x = 3; cudaMalloc(&a, 256); cudaMalloc(&o, 4); cudaMemcpy(a, h, 256, cudaMemcpyHostToDevice); k<<<1, 64>>>(a, o); cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%g\n", r); cudaFree(a); cudaFree(o); }
