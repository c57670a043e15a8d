// A = A * B in place
#include <cstdio>
#include <cublas_v2.h>
int main() { const int n = 64; static float h[n * n]; for (auto& x : h) x = .5f; float *a, *b; cudaMalloc(&a, sizeof h); cudaMalloc(&b, sizeof h); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cudaMemcpy(b, h, sizeof h, cudaMemcpyHostToDevice); cublasHandle_t c; cublasCreate(&c); float one = 1, zero = 0; cublasSgemm(c, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, a, n); cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost); printf("%g\n", h[77]); cublasDestroy(c); cudaFree(a); cudaFree(b); }
