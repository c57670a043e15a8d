// relies on the constructor of a shared object for its zero
#include <cstdio>
struct Acc { int n; float s; __host__ __device__ Acc() : n(0), s(0) {} };
__global__ void sum(const float* p, float* o) { __shared__ Acc acc; __syncthreads(); atomicAdd(&acc.n, 1); atomicAdd(&acc.s, p[threadIdx.x]); __syncthreads(); if (!threadIdx.x) { o[0] = acc.n; o[1] = acc.s; } }
int main() { float h[64], r[2]; for (auto& x : h) x = 2; float *p, *o; cudaMalloc(&p, sizeof h); cudaMalloc(&o, sizeof r); cudaMemcpy(p, h, sizeof h, cudaMemcpyHostToDevice);
  sum<<<1, 64>>>(p, o); cudaMemcpy(r, o, sizeof r, cudaMemcpyDeviceToHost); printf("%g %g\n", r[0], r[1]); cudaFree(p); cudaFree(o); }
