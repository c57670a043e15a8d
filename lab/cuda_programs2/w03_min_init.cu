#include <cstdio>
#include <climits>
__global__ void find_min(const int* a, int n, int* best) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *best = INT_MAX;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicMin(best, a[i]);
}
int main() {
  const int n = 8192; int *a, *b, h = INT_MAX; int* ha = new int[n]; for (int i = 0; i < n; i++) ha[i] = (i * 37) % 9973;
  cudaMalloc(&a, n * 4); cudaMalloc(&b, 4); cudaMemcpy(a, ha, n * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(b, &h, 4, cudaMemcpyHostToDevice);
  find_min<<<8, 128>>>(a, n, b); cudaMemcpy(&h, b, 4, cudaMemcpyDeviceToHost); printf("%d\n", h);
  cudaFree(a); cudaFree(b); delete[] ha;
}
