// host matrices given to cuBLAS
#include <cstdio>
#include <cublas_v2.h>
int main() { const int n = 4; float a[n * n], c[n * n] = {}; for (auto& x : a) x = 1; float one = 1, zero = 0; cublasHandle_t b; cublasCreate(&b); cublasStatus_t s = cublasSgemm(b, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, a, n, &zero, c, n); cudaDeviceSynchronize(); printf("%d %g\n", s, c[0]); cublasDestroy(b); }
