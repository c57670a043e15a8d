// whole first warp in a branch with the full mask; early exit of whole warps before a barrier
#include <cstdio>
__global__ void k(const int* a, int* o) { __shared__ int s[8]; int t = threadIdx.x; int v = a[t]; for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d); if (t % 32 == 0) s[t / 32] = v; __syncthreads(); if (t >= 32) return; v = t < 8 ? s[t] : 0; for (int d = 4; d; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d, 8); if (!t) *o = v; }
int main() { int h[256]; for (int& x : h) x = 2; int *a, *o, r; cudaMalloc(&a, sizeof h); cudaMalloc(&o, 4); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); k<<<1, 256>>>(a, o); cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(a); cudaFree(o); }
