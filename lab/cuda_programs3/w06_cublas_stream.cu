// cuBLAS in a non-blocking stream, the result copied by cudaMemcpy at once
#include <cstdio>
#include <cublas_v2.h>
#define CK(x) do { if ((x) != 0) { printf("failed line %d\n", __LINE__); return 1; } } while (0)
int main() { const int n = 64; float h[n * n]; for (auto& x : h) x = 1; float *a, *c; CK(cudaMalloc(&a, sizeof h)); CK(cudaMalloc(&c, sizeof h));
  CK(cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice)); CK(cudaMemset(c, 0, sizeof h)); CK(cudaDeviceSynchronize());
  cudaStream_t s; CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); cublasHandle_t b; CK(cublasCreate(&b)); CK(cublasSetStream(b, s));
  float one = 1, zero = 0; CK(cublasSgemm(b, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, a, n, &zero, c, n));
  CK(cudaMemcpy(h, c, sizeof h, cudaMemcpyDeviceToHost)); printf("%g\n", h[7]); CK(cublasDestroy(b)); CK(cudaStreamDestroy(s)); CK(cudaFree(a)); CK(cudaFree(c)); }
