// cublasSgemm with a leading dimension below the number of rows: CUBLAS_STATUS_INVALID_VALUE, and nobody looks
#include <cstdio>
#include <cublas_v2.h>
__global__ void fill(float* a, int n, float v) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = v; }
int main() { const int m = 8, n = 4, k = 2; float *a, *b, *c, h[m * n]; cudaMalloc(&a, m * k * 4); cudaMalloc(&b, k * n * 4); cudaMalloc(&c, m * n * 4); fill<<<1, 64>>>(a, m * k, 1); fill<<<1, 64>>>(b, k * n, 1); fill<<<1, 64>>>(c, m * n, 0); cublasHandle_t g; cublasCreate(&g); float one = 1, zero = 0; cublasSgemm(g, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a, k, b, n, &zero, c, n); cudaMemcpy(h, c, sizeof h, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cublasDestroy(g); cudaFree(a); cudaFree(b); cudaFree(c); }
