// n is no multiple of 32: lanes beyond n have returned, yet the mask names them and the sum uses them
#include <cstdio>
__global__ void sum(const int* a, int* o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; int v = a[i];
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d); if (threadIdx.x % 32 == 0) atomicAdd(o, v); }
int main() { int n = 100, h[100]; for (int& x : h) x = 1; int *a, *o, r; cudaMalloc(&a, sizeof h); cudaMalloc(&o, 4); cudaMemset(o, 0, 4); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice);
  sum<<<1, 128>>>(a, o, n); cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(a); cudaFree(o); }
