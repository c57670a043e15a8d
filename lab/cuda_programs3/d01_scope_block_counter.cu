// a counter of block scope that all blocks use
#include <cstdio>
#include <cuda/atomic>
__device__ cuda::atomic<int, cuda::thread_scope_block> hits{0};
__global__ void k() { hits.fetch_add(1, cuda::memory_order_relaxed); }
__global__ void get(int* o) { *o = hits.load(); }
int main() { int *o, h; cudaMalloc(&o, 4); k<<<64, 128>>>(); get<<<1, 1>>>(o); cudaMemcpy(&h, o, 4, cudaMemcpyDeviceToHost); printf("%d\n", h); cudaFree(o); }
