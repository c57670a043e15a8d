// a tile's shuffle in a branch that half of the tile takes
#include <cstdio>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* a) { auto t = cg::tiled_partition<16>(cg::this_thread_block()); int v = a[threadIdx.x]; if (t.thread_rank() < 8) v += t.shfl_down(v, 4); a[threadIdx.x] = v; }
int main() { int* a; cudaMallocManaged(&a, 128); for (int i = 0; i < 32; i++) a[i] = i; k<<<1, 32>>>(a); cudaDeviceSynchronize(); printf("%d\n", a[0]); cudaFree(a); }
