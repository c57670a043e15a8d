// 48 threads and tiles of 32: the last tile is not whole; its sum uses lanes that are not there
#include <cstdio>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void k(int* o) { auto t = cg::tiled_partition<32>(cg::this_thread_block()); int s = cg::reduce(t, 1, cg::plus<int>()); if (t.thread_rank() == 0) o[t.meta_group_rank()] = s; }
int main() { int *o, h[2]; cudaMalloc(&o, 8); k<<<1, 48>>>(o); cudaMemcpy(h, o, 8, cudaMemcpyDeviceToHost); printf("%d %d\n", h[0], h[1]); cudaFree(o); }
