// __activemask() where all lanes are needed: behind a branch nothing says that the lanes have met again
#include <cstdio>
__global__ void k(const int* a, int* o) { int l = threadIdx.x; int v = 0; if (a[l] & 1) v = a[l] * 3; else v = a[l]; unsigned m = __activemask(); for (int d = 16; d; d /= 2) v += __shfl_down_sync(m, v, d); if (!l) *o = v; }
int main() { int h[32]; for (int i = 0; i < 32; i++) h[i] = i; int *a, *o, r; cudaMalloc(&a, sizeof h); cudaMalloc(&o, 4); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); k<<<1, 32>>>(a, o);
  cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(a); cudaFree(o); }
