// x = A x by cublasSgemv with y = x
#include <cstdio>
#include <cublas_v2.h>
int main() { const int n = 64; static float h[n * n]; for (auto& x : h) x = .5f; float *a, *x; cudaMalloc(&a, sizeof h); cudaMalloc(&x, n * 4); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cudaMemcpy(x, h, n * 4, cudaMemcpyHostToDevice); cublasHandle_t c; cublasCreate(&c); float one = 1, zero = 0; cublasSgemv(c, CUBLAS_OP_N, n, n, &one, a, n, x, 1, &zero, x, 1); cudaMemcpy(h, x, n * 4, cudaMemcpyDeviceToHost); printf("%g\n", h[7]); cublasDestroy(c); cudaFree(a); cudaFree(x); }
