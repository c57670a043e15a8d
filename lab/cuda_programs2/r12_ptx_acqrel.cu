#include <cstdio>
__device__ int ld_acq(const int* p) { int v; asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ void st_rel(int* p, int v) { asm volatile("st.release.gpu.global.s32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
__global__ void chain(int* data, int* flag) { int b = blockIdx.x, t = threadIdx.x; if (b > 0) { if (t == 0) while (ld_acq(flag + b - 1) == 0) {} __syncthreads(); } data[b * 32 + t] = b ? data[(b - 1) * 32 + (31 - t)] + 1 : t; __syncthreads(); if (t == 0) st_rel(flag + b, 1); }
int main() { int *d, *f, h[8 * 32]; cudaMalloc(&d, sizeof h); cudaMalloc(&f, 32); cudaMemset(f, 0, 32); chain<<<8, 32>>>(d, f); cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost); printf("%d\n", h[7 * 32]); cudaFree(d); cudaFree(f); }
