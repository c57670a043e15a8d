// SGEMM with 8 x 8 results a thread, launched with 32 x 32 threads
#include <cstdio>
constexpr int TM = 8, TN = 8, BK = 8, T = 32;
__global__ void sgemm(const float* A, const float* B, float* C, int n) {
  __shared__ float a[BK][T * TM + 4], b[BK][T * TN];
  float acc[TM][TN] = {}, ra[TM], rb[TN];
  int t = threadIdx.y * T + threadIdx.x, row = blockIdx.y * T * TM, col = blockIdx.x * T * TN;
  for (int k = 0; k < n; k += BK) {
    for (int i = t; i < BK * T * TM; i += T * T) { a[i % BK][i / BK] = A[(row + i / BK) * n + k + i % BK]; b[i / (T * TN)][i % (T * TN)] = B[(k + i / (T * TN)) * n + col + i % (T * TN)]; }
    __syncthreads();
    for (int j = 0; j < BK; j++) {
      for (int i = 0; i < TM; i++) ra[i] = a[j][threadIdx.y * TM + i];
      for (int i = 0; i < TN; i++) rb[i] = b[j][threadIdx.x * TN + i];
      for (int i = 0; i < TM; i++) for (int l = 0; l < TN; l++) acc[i][l] += ra[i] * rb[l];
    }
    __syncthreads();
  }
  for (int i = 0; i < TM; i++) for (int l = 0; l < TN; l++) C[(row + threadIdx.y * TM + i) * n + col + threadIdx.x * TN + l] = acc[i][l];
}
int main() { const int n = 256; static float h[n * n]; for (auto& x : h) x = 1; float *a, *c; cudaMalloc(&a, sizeof h); cudaMalloc(&c, sizeof h); cudaMemset(c, 0, sizeof h); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); sgemm<<<dim3(1, 1), dim3(T, T)>>>(a, a, c, n); cudaMemcpy(h, c, sizeof h, cudaMemcpyDeviceToHost); printf("%g (0 on a GPU: too many registers)\n", h[5]); cudaFree(a); cudaFree(c); }
