// __shared__ with an initialiser: nvcc refuses
#include <cstdio>
__global__ void k(const int* a, int* out, int n) {
  __shared__ int sum = 0;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&sum, a[i]);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(out, sum);
}
int main() {
  const int n = 256; int *a, *o; cudaMallocManaged(&a, n * 4); cudaMallocManaged(&o, 4); *o = 0; for (int i = 0; i < n; i++) a[i] = i;
  k<<<2, 128>>>(a, o, n); cudaDeviceSynchronize(); printf("%d\n", *o); cudaFree(a); cudaFree(o);
}
