#include <cstdio>
#include <utility>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void jacobi(float* a, float* b, int n, float* norm, int iters) { auto g = cg::this_grid(); int i = g.thread_rank(); 
  for (int k = 0; k < iters; k++) { if (i == 0) norm[(k + 1) % 3] = 0; g.sync(); float d = 0; if (i > 0 && i < n - 1) { b[i] = .5f * (a[i - 1] + a[i + 1]); d = fabsf(b[i] - a[i]); } else if (i < n) b[i] = a[i]; atomicAdd(&norm[k % 3], d); g.sync(); if (norm[k % 3] < 1e-3f) break; float* t = a; a = b; b = t; } }
int main() { int n = 300, it = 50; float *a, *b, *m; cudaMallocManaged(&a, n * 4); cudaMallocManaged(&b, n * 4); cudaMallocManaged(&m, 12); for (int i = 0; i < n; i++) a[i] = b[i] = i == 0; m[0] = m[1] = m[2] = 0; void* args[] = {&a, &b, &n, &m, &it}; cudaLaunchCooperativeKernel((void*)jacobi, 3, 100, args); cudaDeviceSynchronize(); printf("%g %g\n", b[1], a[2]); cudaFree(a); cudaFree(b); cudaFree(m); }
