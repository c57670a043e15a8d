// the flag is stored relaxed
#include <cstdio>
#include <cuda/atomic>
__device__ int flag, data;
__global__ void k(int* o) { cuda::atomic_ref<int, cuda::thread_scope_device> f(flag); if (blockIdx.x == 0 && threadIdx.x == 0) { data = 42; f.store(1, cuda::memory_order_relaxed); } else if (threadIdx.x == 0 && f.load(cuda::memory_order_acquire)) o[blockIdx.x] = data; }
int main() { int *o, h[4] = {}; cudaMalloc(&o, 16); cudaMemset(o, 0, 16); k<<<4, 32>>>(o); cudaMemcpy(h, o, 16, cudaMemcpyDeviceToHost); printf("%d\n", h[3]); cudaFree(o); }
