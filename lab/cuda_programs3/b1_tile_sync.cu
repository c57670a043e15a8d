// right: tiles of 8 threads exchange through shared memory with tile.sync()
#include <cstdio>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* o) { __shared__ int s[64]; auto t = cg::tiled_partition<8>(cg::this_thread_block()); int* m = s + t.meta_group_rank() * 8; m[t.thread_rank()] = threadIdx.x; t.sync(); for (int d = 4; d; d /= 2) { int v = t.thread_rank() < d ? m[t.thread_rank() + d] : 0; t.sync(); if (t.thread_rank() < d) m[t.thread_rank()] += v; t.sync(); } if (t.thread_rank() == 0) o[t.meta_group_rank()] = m[0]; }
int main() { int *o, h[8]; cudaMalloc(&o, 32); k<<<1, 64>>>(o); cudaMemcpy(h, o, 32, cudaMemcpyDeviceToHost); printf("%d %d\n", h[0], h[7]); cudaFree(o); }
