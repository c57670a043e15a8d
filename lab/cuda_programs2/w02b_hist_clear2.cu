// the bins are cleared by the first block only, in the same launch that counts (no memset)
#include <cstdio>
__global__ void hist(const int* a, int n, int* bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x == 0 && threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  if (i < n) atomicAdd(&bins[a[i] & 15], 1);
}
int main() {
  const int n = 1 << 13; int *h = new int[n], *a, *b, hb[16]; for (int i = 0; i < n; i++) h[i] = i * 7;
  cudaMalloc(&a, n * 4); cudaMalloc(&b, sizeof hb); cudaMemcpy(a, h, n * 4, cudaMemcpyHostToDevice);
  hist<<<n / 256, 256>>>(a, n, b);
  cudaMemcpy(hb, b, sizeof hb, cudaMemcpyDeviceToHost); printf("%d\n", hb[7]); cudaFree(a); cudaFree(b); delete[] h;
}
