// cuBLAS writes pinned memory; the host reads without waiting
#include <cstdio>
#include <cublas_v2.h>
int main() { const int n = 4096; float *a, *d; cudaMallocHost(&a, n * 4); cudaMalloc(&d, n * 4); cudaMemset(d, 0, n * 4); for (int i = 0; i < n; i++) a[i] = 1; cublasHandle_t b; cublasCreate(&b); float two = 2; cublasSaxpy(b, n, &two, d, 1, a, 1); cublasSscal(b, n, &two, a, 1); printf("%g\n", a[5]); cudaDeviceSynchronize(); cublasDestroy(b); cudaFreeHost(a); cudaFree(d); }
