// right: cuda::atomic_ref's store initialises shared memory and a flag in global memory
#include <cstdio>
#include <cuda/atomic>
__global__ void sh(int* o, int* g) { __shared__ int s; cuda::atomic_ref<int, cuda::thread_scope_block> a(s); cuda::atomic_ref<int, cuda::thread_scope_device> b(*g); if (threadIdx.x == 0) { a.store(0); b.store(5); } __syncthreads(); a.fetch_add(1); __syncthreads(); if (threadIdx.x == 0) *o = a.load() + b.load(); }
int main() { int *o, *g, r; cudaMalloc(&o, 4); cudaMalloc(&g, 4); sh<<<1, 64>>>(o, g); cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(o); cudaFree(g); }
