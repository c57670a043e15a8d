// the event is recorded in another stream than that of the copy; host reads pinned memory
#include <cstdio>
__global__ void produce(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = i; }
int main() { int n = 1 << 14; float *a, *h; cudaMalloc(&a, n * 4); cudaMallocHost(&h, n * 4); 
  cudaStream_t s, t; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking); cudaEvent_t e; cudaEventCreate(&e);
  produce<<<n / 256, 256, 0, s>>>(a, n); cudaMemcpyAsync(h, a, n * 4, cudaMemcpyDeviceToHost, s); cudaEventRecord(e, t); cudaEventSynchronize(e);
  printf("%g\n", h[100]); cudaDeviceSynchronize(); cudaFree(a); cudaFreeHost(h); cudaEventDestroy(e); cudaStreamDestroy(s); cudaStreamDestroy(t); }
