// device pointer mode, the result on the host's stack
#include <cstdio>
#include <cublas_v2.h>
int main() { const int n = 64; float h[n]; for (auto& x : h) x = 2; float* a; cudaMalloc(&a, sizeof h); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cublasHandle_t b; cublasCreate(&b); cublasSetPointerMode(b, CUBLAS_POINTER_MODE_DEVICE); float r = 0; cublasStatus_t s = cublasSdot(b, n, a, 1, a, 1, &r); cudaDeviceSynchronize(); printf("%d %g\n", s, r); cublasDestroy(b); cudaFree(a); }
