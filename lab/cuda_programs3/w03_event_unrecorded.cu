// stream b waits for the event before anybody has recorded it: no wait at all
#include <cstdio>
__global__ void produce(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = i; }
__global__ void consume(const float* a, float* b, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) b[i] = a[i] + 1; }
int main() { int n = 1 << 14; float *a, *b; cudaMalloc(&a, n * 4); cudaMalloc(&b, n * 4); cudaMemset(a, 0, n * 4); cudaDeviceSynchronize();
  cudaStream_t s, t; cudaStreamCreate(&s); cudaStreamCreate(&t); cudaEvent_t e; cudaEventCreate(&e);
  cudaStreamWaitEvent(t, e, 0); produce<<<n / 256, 256, 0, s>>>(a, n); cudaEventRecord(e, s); consume<<<n / 256, 256, 0, t>>>(a, b, n);
  cudaDeviceSynchronize(); float x; cudaMemcpy(&x, b + 5, 4, cudaMemcpyDeviceToHost); printf("%g\n", x);
  cudaFree(a); cudaFree(b); cudaEventDestroy(e); cudaStreamDestroy(s); cudaStreamDestroy(t); }
