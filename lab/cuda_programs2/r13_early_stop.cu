// search with an early stop flag: volatile bool; every finder stores; also a shared one
#include <cstdio>
__device__ volatile bool found;
__global__ void search(const int* a, int n, int key, int* where) { __shared__ int hit; if (threadIdx.x == 0) hit = 0; __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n && !found; i += gridDim.x * blockDim.x) if (a[i] == key) { found = true; hit = 1; atomicMin(where, i); }
  __syncthreads(); if (threadIdx.x == 0 && hit) printf("block %d\n", blockIdx.x); }
int main() { const int n = 4096; int *a, *w; cudaMallocManaged(&a, n * 4); cudaMallocManaged(&w, 4); *w = n; for (int i = 0; i < n; i++) a[i] = i / 2; search<<<4, 64>>>(a, n, 700, w); cudaDeviceSynchronize(); printf("%d\n", *w); cudaFree(a); cudaFree(w); }
