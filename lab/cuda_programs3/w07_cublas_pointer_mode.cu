// cublasSdot with the result in device memory, in the host's pointer mode
#include <cstdio>
#include <cublas_v2.h>
int main() { const int n = 64; float h[n]; for (auto& x : h) x = 1; float *a, *r; cudaMalloc(&a, sizeof h); cudaMalloc(&r, 4);
  cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cublasHandle_t b; cublasCreate(&b);
  cublasSdot(b, n, a, 1, a, 1, r); float x; cudaMemcpy(&x, r, 4, cudaMemcpyDeviceToHost); printf("%g\n", x); cublasDestroy(b); cudaFree(a); cudaFree(r); }
