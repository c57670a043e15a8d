// the bins are cleared in stream a; kernels in a and in b add to them; b does not wait for the clearing
#include <cstdio>
__global__ void hist(const int* a, int n, int* bins) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(&bins[a[i] & 7], 1); }
int main() { const int n = 1024; int *x, *bins, h[8], *hx = new int[n]; for (int i = 0; i < n; i++) hx[i] = i; cudaMalloc(&x, n * 4); cudaMalloc(&bins, 32); cudaMemcpy(x, hx, n * 4, cudaMemcpyHostToDevice); cudaStream_t a, b; cudaStreamCreate(&a); cudaStreamCreate(&b);
  cudaMemsetAsync(bins, 0, 32, a); hist<<<2, 256, 0, a>>>(x, n / 2, bins); hist<<<2, 256, 0, b>>>(x + n / 2, n / 2, bins); cudaDeviceSynchronize(); cudaMemcpy(h, bins, 32, cudaMemcpyDeviceToHost); printf("%d\n", h[3]); cudaStreamDestroy(a); cudaStreamDestroy(b); cudaFree(x); cudaFree(bins); delete[] hx; }
