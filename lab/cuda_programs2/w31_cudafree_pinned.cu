#include <cstdio>
#include <cstdlib>
__global__ void k(int* a) { a[threadIdx.x] = threadIdx.x; }
int main() {
  int *h, *d, *p = (int*)malloc(128); cudaMallocHost(&h, 128); cudaMalloc(&d, 128); k<<<1, 32>>>(d);
  cudaMemcpy(h, d, 128, cudaMemcpyDeviceToHost); printf("%d\n", h[3]); cudaFree(h); cudaFreeHost(d); cudaFreeHost(p);
}
