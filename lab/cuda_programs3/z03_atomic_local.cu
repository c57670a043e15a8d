// atomicAdd on a local variable: an error on a GPU (atomics do not work on local memory)
#include <cstdio>
__device__ void count(const int* a, int n, int* c) { for (int i = 0; i < n; i++) if (a[i] & 1) atomicAdd(c, 1); }
__global__ void k(const int* a, int* o, int n) { int c = 0; count(a, n, &c); o[threadIdx.x] = c; }
int main() { int h[8] = {1, 2, 3, 4, 5, 6, 7, 9}, *a, *o; cudaMalloc(&a, 32); cudaMalloc(&o, 128); cudaMemcpy(a, h, 32, cudaMemcpyHostToDevice); k<<<1, 32>>>(a, o, 8); int r; cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(a); cudaFree(o); }
