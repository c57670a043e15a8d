// device pointer mode, but alpha and beta on the host's stack
#include <cstdio>
#include <cublas_v2.h>
int main() { const int n = 16; float h[n * n]; for (auto& x : h) x = 1; float *a, *c; cudaMalloc(&a, sizeof h); cudaMalloc(&c, sizeof h); cudaMemset(c, 0, sizeof h);
  cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cublasHandle_t b; cublasCreate(&b); cublasSetPointerMode(b, CUBLAS_POINTER_MODE_DEVICE);
  float one = 1, zero = 0; cublasStatus_t st = cublasSgemm(b, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, a, n, &zero, c, n);
  cudaMemcpy(h, c, sizeof h, cudaMemcpyDeviceToHost); printf("%d %g\n", st, h[7]); cublasDestroy(b); cudaFree(a); cudaFree(c); }
