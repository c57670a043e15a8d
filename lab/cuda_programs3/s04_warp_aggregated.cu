// stream compaction, one atomic addition a group of lanes that are there
#include <cstdio>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ int grab(int* c) { auto g = cg::coalesced_threads(); int b; if (g.thread_rank() == 0) b = atomicAdd(c, g.size()); return g.shfl(b, 0) + g.thread_rank(); }
__global__ void filter(const int* a, int* o, int* c, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) if (a[i] % 3 == 0) o[grab(c)] = a[i]; }
int main() { int n = 3000, h[3000]; for (int i = 0; i < n; i++) h[i] = i; int *a, *o, *c, r; cudaMalloc(&a, sizeof h); cudaMalloc(&o, sizeof h); cudaMalloc(&c, 4); cudaMemset(c, 0, 4); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); filter<<<4, 128>>>(a, o, c, n); cudaMemcpy(&r, c, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(a); cudaFree(o); cudaFree(c); }
