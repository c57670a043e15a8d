// double buffering with two streams, events, pinned memory, callback; right
#include <cstdio>
__global__ void work(float* d, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) d[i] = d[i] * 2 + 1; }
int main() { const int n = 1024, parts = 6; float *h, *d[2]; cudaMallocHost(&h, n * parts * 4); cudaStream_t s[2]; cudaEvent_t up[2], done[2]; for (int i = 0; i < n * parts; i++) h[i] = i;
  for (int i = 0; i < 2; i++) { cudaMalloc(&d[i], n * 4); cudaStreamCreate(&s[i]); cudaEventCreateWithFlags(&up[i], cudaEventDisableTiming); cudaEventCreate(&done[i]); }
  for (int p = 0; p < parts; p++) { int b = p & 1; cudaStreamWaitEvent(s[0], done[b], 0); cudaMemcpyAsync(d[b], h + p * n, n * 4, cudaMemcpyHostToDevice, s[0]); cudaEventRecord(up[b], s[0]); cudaStreamWaitEvent(s[1], up[b], 0); work<<<4, 256, 0, s[1]>>>(d[b], n); cudaMemcpyAsync(h + p * n, d[b], n * 4, cudaMemcpyDeviceToHost, s[1]); cudaEventRecord(done[b], s[1]); }
  cudaDeviceSynchronize(); printf("%g\n", h[5000]); for (int i = 0; i < 2; i++) { cudaFree(d[i]); cudaStreamDestroy(s[i]); cudaEventDestroy(up[i]); cudaEventDestroy(done[i]); } cudaFreeHost(h); }
