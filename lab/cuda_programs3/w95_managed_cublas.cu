// cuBLAS on managed memory; the host reads the product without waiting
#include <cstdio>
#include <cublas_v2.h>
int main() { const int n = 64; float *a, *c; cudaMallocManaged(&a, n * n * 4); cudaMallocManaged(&c, n * n * 4); for (int i = 0; i < n * n; i++) a[i] = 1; cublasHandle_t b; cublasCreate(&b); float one = 1, zero = 0; cublasSgemm(b, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, a, n, &zero, c, n); printf("%g\n", c[5]); cudaDeviceSynchronize(); cublasDestroy(b); cudaFree(a); cudaFree(c); }
