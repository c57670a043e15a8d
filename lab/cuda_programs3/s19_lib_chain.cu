// cuBLAS, own kernel and cuRAND in one non-blocking stream; the scalars of cuBLAS are locals
#include <cstdio>
#include <cublas_v2.h>
#include <curand.h>
__global__ void scale(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] *= 2; }
int main() { const int n = 32; float *a, *c, *h; cudaMalloc(&a, n * n * 4); cudaMalloc(&c, n * n * 4); cudaMallocHost(&h, n * n * 4); cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cublasHandle_t b; cublasCreate(&b); cublasSetStream(b, s); curandGenerator_t g; curandCreateGenerator(&g, CURAND_RNG_PSEUDO_DEFAULT); curandSetStream(g, s); curandGenerateUniform(g, a, n * n); scale<<<4, 256, 0, s>>>(a, n * n);
  { float one = 1, zero = 0; cublasSgemm(b, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &one, a, n, a, n, &zero, c, n); } cudaMemcpyAsync(h, c, n * n * 4, cudaMemcpyDeviceToHost, s); cudaStreamSynchronize(s); printf("%d\n", h[0] > 0); curandDestroyGenerator(g); cublasDestroy(b); cudaStreamDestroy(s); cudaFree(a); cudaFree(c); cudaFreeHost(h); }
