// y[row] cleared by the blocks of the first column chunk, added to atomically by all chunks
#include <cstdio>
__global__ void matvec(const float* A, const float* x, float* y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x, c0 = blockIdx.y * 32;
  if (row >= n) return;
  if (blockIdx.y == 0) y[row] = 0;
  float s = 0; for (int c = c0; c < c0 + 32; c++) s += A[c * n + row] * x[c];
  atomicAdd(&y[row], s);
}
int main() {
  const int n = 128; float *A, *x, *y, h[n]; float* hA = new float[n * n]; for (int i = 0; i < n * n; i++) hA[i] = i % 3; for (float& v : h) v = 1;
  cudaMalloc(&A, n * n * 4); cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4);
  cudaMemcpy(A, hA, n * n * 4, cudaMemcpyHostToDevice); cudaMemcpy(x, h, n * 4, cudaMemcpyHostToDevice);
  matvec<<<dim3(2, 4), 64>>>(A, x, y, n); cudaMemcpy(h, y, n * 4, cudaMemcpyDeviceToHost); printf("%g\n", h[1]);
  cudaFree(A); cudaFree(x); cudaFree(y); delete[] hA;
}
