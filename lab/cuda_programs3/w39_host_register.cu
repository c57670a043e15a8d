// cudaHostUnregister while the asynchronous copy may go on, then the buffer is filled again
#include <cstdio>
#include <cstdlib>
__global__ void k(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] += 1; }
int main() { int n = 1 << 14; float* h = (float*)aligned_alloc(4096, n * 4); for (int i = 0; i < n; i++) h[i] = i; cudaHostRegister(h, n * 4, 0); float* a; cudaMalloc(&a, n * 4); cudaStream_t s; cudaStreamCreate(&s);
  cudaMemcpyAsync(a, h, n * 4, cudaMemcpyHostToDevice, s); k<<<n / 256, 256, 0, s>>>(a, n); cudaMemcpyAsync(h, a, n * 4, cudaMemcpyDeviceToHost, s); cudaHostUnregister(h); printf("%g\n", h[5]); cudaStreamSynchronize(s); cudaStreamDestroy(s); cudaFree(a); free(h); }
