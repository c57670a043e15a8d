// blockDim.z of 128 is above 64; errors are not looked at
#include <cstdio>
__global__ void k(float* a) { int i = blockIdx.x * 128 + threadIdx.z; a[i] = i; }
int main() {
  float* a; cudaMalloc(&a, 1024 * 4); cudaMemset(a, 0, 4096); float h[1024];
  k<<<8, dim3(1, 1, 128)>>>(a);
  cudaMemcpy(h, a, 4096, cudaMemcpyDeviceToHost); printf("%g\n", h[1000]); cudaFree(a);
}
