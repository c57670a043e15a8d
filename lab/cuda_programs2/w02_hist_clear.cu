// global bins cleared by each block's threads in the same launch; cudaMemset has cleared them, too
#include <cstdio>
__global__ void hist(const unsigned char* a, int n, unsigned* bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 256) bins[i] = 0;
  __syncthreads();
  if (i < n) atomicAdd(&bins[a[i]], 1u);
}
int main() {
  const int n = 1 << 14; unsigned char* h = new unsigned char[n]; for (int i = 0; i < n; i++) h[i] = i * 7;
  unsigned char* a; unsigned* b; unsigned hb[256];
  cudaMalloc(&a, n); cudaMalloc(&b, sizeof hb); cudaMemcpy(a, h, n, cudaMemcpyHostToDevice); cudaMemset(b, 0, sizeof hb);
  hist<<<n / 256, 256>>>(a, n, b);
  cudaMemcpy(hb, b, sizeof hb, cudaMemcpyDeviceToHost); printf("%u\n", hb[7]); cudaFree(a); cudaFree(b); delete[] h;
}
