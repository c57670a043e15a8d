// cublasSgemmStridedBatched whose results overlap (the stride of C is half of a matrix)
#include <cstdio>
#include <cublas_v2.h>
int main() { const int n = 16; static float h[n * n * 2]; for (auto& x : h) x = 1; float *a, *c; cudaMalloc(&a, sizeof h); cudaMalloc(&c, sizeof h); cudaMemset(c, 0, sizeof h); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cublasHandle_t b; cublasCreate(&b); float one = 1, zero = 0; cublasStatus_t s = cublasSgemmStridedBatched(b, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, n * n, a, n, n * n, &zero, c, n, n * n / 2, 2); cudaMemcpy(h, c, sizeof h, cudaMemcpyDeviceToHost); printf("%d %g\n", s, h[3]); cublasDestroy(b); cudaFree(a); cudaFree(c); }
