// cooperative groups: a tile's shuffle in a branch that half of the tile takes
#include <cstdio>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* o) { auto tile = cg::tiled_partition<16>(cg::this_thread_block()); int v = tile.thread_rank(); if (tile.thread_rank() < 8) { for (int d = 8; d; d /= 2) v += tile.shfl_down(v, d); } o[threadIdx.x] = v; }
int main() { int *o, r[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(r, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", r[0]); cudaFree(o); }
