// block 0 publishes a parameter twice (once before, once after its barrier); others read it in the same launch
#include <cstdio>
__global__ void k(float* scale, const float* a, float* out) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *scale = a[0] * 2;
  __syncthreads();
  if (blockIdx.x == 0 && threadIdx.x == 0) *scale = a[0] + a[0];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x > 0) out[i] = a[i] * *scale; else out[i] = 0;
}
int main() {
  const int n = 512; float *s, *a, *o, h[n]; for (int i = 0; i < n; i++) h[i] = i + 1;
  cudaMalloc(&s, 4); cudaMalloc(&a, sizeof h); cudaMalloc(&o, sizeof h); cudaMemset(s, 0, 4); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice);
  k<<<4, 128>>>(s, a, o); cudaMemcpy(h, o, sizeof h, cudaMemcpyDeviceToHost); printf("%g\n", h[n - 1]); cudaFree(s); cudaFree(a); cudaFree(o);
}
