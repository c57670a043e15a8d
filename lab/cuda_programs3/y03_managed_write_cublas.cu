// an own kernel, then cuBLAS on managed memory; waits for the kernel, not for cuBLAS
#include <cstdio>
#include <cublas_v2.h>
__global__ void init(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = i; }
int main() { const int n = 4096; float *a; cudaMallocManaged(&a, n * 4); init<<<n / 256, 256>>>(a, n); cudaDeviceSynchronize(); cublasHandle_t b; cublasCreate(&b); float two = 2; cublasSscal(b, n, &two, a, 1); printf("%g\n", a[5]); cudaDeviceSynchronize(); cublasDestroy(b); cudaFree(a); }
