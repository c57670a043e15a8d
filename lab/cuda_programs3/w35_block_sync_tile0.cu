// block.sync() only by the first tile; the others go on to the next one
#include <cstdio>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* o) { auto b = cg::this_thread_block(); auto tile = cg::tiled_partition<32>(b); __shared__ int s[4]; s[tile.meta_group_rank()] = 1; if (tile.meta_group_rank() == 0) b.sync(); if (threadIdx.x == 0) s[0] = s[1] + s[2] + s[3]; b.sync(); o[threadIdx.x] = s[0]; }
int main() { int *o, r[128]; cudaMalloc(&o, 512); k<<<1, 128>>>(o); cudaMemcpy(r, o, 512, cudaMemcpyDeviceToHost); printf("%d\n", r[0]); cudaFree(o); }
