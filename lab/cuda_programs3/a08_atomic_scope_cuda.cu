// cuda::atomic_ref of block scope as a flag between blocks
#include <cstdio>
#include <cuda/atomic>
__device__ int flag, data;
__global__ void k(int* o) { cuda::atomic_ref<int, cuda::thread_scope_block> f(flag); if (blockIdx.x == 0 && threadIdx.x == 0) { data = 42; f.store(1, cuda::memory_order_release); } else if (threadIdx.x == 0 && f.load(cuda::memory_order_acquire)) o[blockIdx.x] = data; }
int main() { int *o, h[4] = {}; cudaMalloc(&o, 16); cudaMemset(o, 0, 16); k<<<4, 32>>>(o); cudaMemcpy(h, o, 16, cudaMemcpyDeviceToHost); printf("%d\n", h[3]); cudaFree(o); }
