// right: last block by cuda::atomic's fetch_add(acq_rel), a barrier on both sides
#include <cstdio>
#include <cuda/atomic>
__device__ cuda::atomic<unsigned, cuda::thread_scope_device> done{0};
__global__ void k(const float* a, float* part, float* o) { __shared__ float s[128]; __shared__ bool last; s[threadIdx.x] = a[blockIdx.x * 128 + threadIdx.x]; __syncthreads(); for (int d = 64; d; d /= 2) { if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d]; __syncthreads(); } if (threadIdx.x == 0) { part[blockIdx.x] = s[0]; last = done.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1; } __syncthreads(); if (last && threadIdx.x < 32) { float v = threadIdx.x < gridDim.x ? part[threadIdx.x] : 0; for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d); if (!threadIdx.x) *o = v; } }
int main() { float h[1024], *a, *p, *o, r; for (auto& x : h) x = 1; cudaMalloc(&a, 4096); cudaMalloc(&p, 32); cudaMalloc(&o, 4); cudaMemcpy(a, h, 4096, cudaMemcpyHostToDevice); k<<<8, 128>>>(a, p, o); cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%g\n", r); cudaFree(a); cudaFree(p); cudaFree(o); }
