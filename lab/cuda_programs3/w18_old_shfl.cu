// shuffles without _sync: gone since CUDA 9 (sm_70)
#include <cstdio>
__global__ void sum(const int* a, int* o) { int v = a[threadIdx.x]; for (int d = 16; d; d /= 2) v += __shfl_down(v, d); if (!threadIdx.x) *o = v; }
int main() { int h[32]; for (int& x : h) x = 1; int *a, *o, r; cudaMalloc(&a, sizeof h); cudaMalloc(&o, 4); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice);
  sum<<<1, 32>>>(a, o); cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(a); cudaFree(o); }
