// cublasSgemmBatched with the array of pointers in host memory (it must be in device memory)
#include <cstdio>
#include <cublas_v2.h>
int main() { const int n = 8; float h[n * n]; for (auto& x : h) x = 1; float *a, *c; cudaMalloc(&a, sizeof h); cudaMalloc(&c, sizeof h * 2); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); const float* pa[2] = {a, a}; float* pc[2] = {c, c + n * n}; cublasHandle_t b; cublasCreate(&b); float one = 1, zero = 0; cublasStatus_t s = cublasSgemmBatched(b, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, pa, n, pa, n, &zero, pc, n, 2); cudaMemcpy(h, c, sizeof h, cudaMemcpyDeviceToHost); printf("%d %g\n", s, h[3]); cublasDestroy(b); cudaFree(a); cudaFree(c); }
