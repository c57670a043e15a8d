#include <cstdio>
#include <cuda/atomic>
__global__ void k(int* d, int* flags, int* out) { cuda::atomic_ref<int, cuda::thread_scope_device> f(flags[blockIdx.x]); d[blockIdx.x * 32 + threadIdx.x] = blockIdx.x * 100 + threadIdx.x; __syncthreads(); if (threadIdx.x == 0) f.store(1, cuda::memory_order_release);
  if (blockIdx.x > 0) { cuda::atomic_ref<int, cuda::thread_scope_device> g(flags[blockIdx.x - 1]); if (threadIdx.x == 0) while (!g.load(cuda::memory_order_acquire)) {} __syncthreads(); out[blockIdx.x * 32 + threadIdx.x] = d[(blockIdx.x - 1) * 32 + 31 - threadIdx.x]; } }
int main() { int *d, *f, *o; cudaMalloc(&d, 512); cudaMalloc(&f, 16); cudaMallocManaged(&o, 512); cudaMemset(f, 0, 16); k<<<4, 32>>>(d, f, o); cudaDeviceSynchronize(); printf("%d\n", o[96]); cudaFree(d); cudaFree(f); cudaFree(o); }
