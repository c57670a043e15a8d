#include <cstdio>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void relax(int* d, int n, int* changed) {
  cg::grid_group g = cg::this_grid();
  int i = g.thread_rank();
  do {
    if (i == 0) *changed = 0;
    g.sync();
    if (i > 0 && i < n) { int v = d[i]; if (v > 0) { d[i] = v - 1; *changed = 1; } }
    g.sync();
  } while (*changed);
}
int main() {
  int n = 512; int *d, *c; cudaMallocManaged(&d, n * 4); cudaMallocManaged(&c, 4); for (int i = 0; i < n; i++) d[i] = i % 5;
  void* args[] = {&d, &n, &c};
  cudaLaunchCooperativeKernel((void*)relax, dim3(4), dim3(128), args, 0, 0);
  cudaDeviceSynchronize(); printf("%d %s\n", d[4], cudaGetErrorString(cudaGetLastError())); cudaFree(d); cudaFree(c);
}
