// count of positives; kernel "initialises" the counter itself, the host has cleared it, too
#include <cstdio>
__global__ void count(const int* a, int n, int* c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) *c = 0;
  if (i < n && a[i] > 0) atomicAdd(c, 1);
}
int main() {
  const int n = 4096; int *a, *c, h;
  cudaMallocManaged(&a, n * sizeof(int)); cudaMalloc(&c, sizeof(int));
  for (int i = 0; i < n; i++) a[i] = i % 3 - 1;
  cudaMemset(c, 0, sizeof(int));
  count<<<n / 256, 256>>>(a, n, c);
  cudaMemcpy(&h, c, sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\n", h); cudaFree(a); cudaFree(c);
}
