// cublasSnrm2 into a __device__-side pointer (default host mode), used by a kernel: a common slip
#include <cstdio>
#include <cublas_v2.h>
__global__ void normalise(float* a, const float* norm, int n) { int i = threadIdx.x; if (i < n) a[i] /= *norm; }
int main() { const int n = 64; float h[n]; for (auto& x : h) x = 2; float *a, *r; cudaMalloc(&a, sizeof h); cudaMalloc(&r, 4); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cublasHandle_t b; cublasCreate(&b); cublasStatus_t s = cublasSnrm2(b, n, a, 1, r); normalise<<<1, 64>>>(a, r, n); cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost); printf("%d %g\n", s, h[0]); cublasDestroy(b); cudaFree(a); cudaFree(r); }
