// total is set to 0 by block 0 behind no grid barrier; each block adds its sum
#include <cstdio>
__global__ void sum(const float* a, int n, float* total) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  if (i == 0) *total = 0.f;
  s[t] = i < n ? a[i] : 0.f;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) { if (t < k) s[t] += s[t + k]; __syncthreads(); }
  if (t == 0) atomicAdd(total, s[0]);
}
int main() {
  const int n = 10000; float *h = new float[n], *a, *d, r; for (int i = 0; i < n; i++) h[i] = 1;
  cudaMalloc(&a, n * 4); cudaMalloc(&d, 4); cudaMemcpy(a, h, n * 4, cudaMemcpyHostToDevice);
  sum<<<(n + 255) / 256, 256>>>(a, n, d);
  cudaMemcpy(&r, d, 4, cudaMemcpyDeviceToHost); printf("%g\n", r); cudaFree(a); cudaFree(d); delete[] h;
}
