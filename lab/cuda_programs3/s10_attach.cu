// managed memory attached to a stream: the host may use another one's while a kernel runs; waits for its own stream
#include <cstdio>
__global__ void k(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] *= 2; }
int main() { int n = 4096; float *a, *b; cudaMallocManaged(&a, n * 4); cudaMallocManaged(&b, n * 4); cudaStream_t s, t; cudaStreamCreate(&s); cudaStreamCreate(&t); cudaStreamAttachMemAsync(s, a, 0, cudaMemAttachSingle); cudaStreamAttachMemAsync(t, b, 0, cudaMemAttachSingle); cudaDeviceSynchronize();
  for (int i = 0; i < n; i++) a[i] = 1; k<<<n / 128, 128, 0, s>>>(a, n); for (int i = 0; i < n; i++) b[i] = 3; k<<<n / 128, 128, 0, t>>>(b, n); cudaStreamSynchronize(s); float x = a[5]; cudaStreamSynchronize(t); printf("%g %g\n", x, b[6]); cudaStreamDestroy(s); cudaStreamDestroy(t); cudaFree(a); cudaFree(b); }
