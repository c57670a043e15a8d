// grid.sync with two buffers and a norm that one thread clears for the step after the next
#include <cstdio>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void jacobi(float* a, float* b, float* norm, int n, int steps) { auto g = cg::this_grid(); int i = g.thread_rank(); for (int s = 0; s < steps; s++) { if (i == 0) norm[(s + 1) % 3] = 0; float d = 0; if (i > 0 && i < n - 1) { float v = .5f * (a[i - 1] + a[i + 1]); d = fabsf(v - a[i]); b[i] = v; } if (d > 0) atomicAdd(&norm[s % 3], d); g.sync(); if (norm[s % 3] < 1e-3f) break; float* t = a; a = b; b = t; } }
int main() { int n = 256, steps = 20; float h[256] = {}; h[0] = 1; float *a, *b, *m; cudaMalloc(&a, 1024); cudaMalloc(&b, 1024); cudaMalloc(&m, 12); cudaMemset(m, 0, 12); cudaMemcpy(a, h, 1024, cudaMemcpyHostToDevice); cudaMemcpy(b, h, 1024, cudaMemcpyHostToDevice); void* args[] = {&a, &b, &m, &n, &steps}; cudaLaunchCooperativeKernel((void*)jacobi, dim3(2), dim3(128), args, 0, 0); cudaMemcpy(h, a, 1024, cudaMemcpyDeviceToHost); printf("%g\n", h[1]); cudaFree(a); cudaFree(b); cudaFree(m); }
