// cublasCreate forgotten
#include <cstdio>
#include <cublas_v2.h>
int main() { cublasHandle_t b = nullptr; float *a, h[4] = {1, 2, 3, 4}, two = 2; cudaMalloc(&a, 16); cudaMemcpy(a, h, 16, cudaMemcpyHostToDevice); cublasSscal(b, 4, &two, a, 1); cudaMemcpy(h, a, 16, cudaMemcpyDeviceToHost); printf("%g\n", h[1]); cudaFree(a); }
