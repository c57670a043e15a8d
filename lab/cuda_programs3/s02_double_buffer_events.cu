// pinned double buffering with an event for each buffer
#include <cstdio>
__global__ void sum(const float* a, float* t, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(t, a[i]); }
int main() { const int n = 4096; float *h[2], *d[2], *t; cudaEvent_t e[2]; cudaStream_t s[2]; cudaMalloc(&t, 4); cudaMemset(t, 0, 4); cudaDeviceSynchronize();
  for (int i = 0; i < 2; i++) { cudaMallocHost(&h[i], n * 4); cudaMalloc(&d[i], n * 4); cudaEventCreateWithFlags(&e[i], cudaEventDisableTiming); cudaStreamCreate(&s[i]); }
  for (int k = 0; k < 6; k++) { int b = k % 2; if (k >= 2) cudaEventSynchronize(e[b]); for (int i = 0; i < n; i++) h[b][i] = 1; cudaMemcpyAsync(d[b], h[b], n * 4, cudaMemcpyHostToDevice, s[b]); cudaEventRecord(e[b], s[b]); sum<<<n / 256, 256, 0, s[b]>>>(d[b], t, n); }
  cudaDeviceSynchronize(); float r; cudaMemcpy(&r, t, 4, cudaMemcpyDeviceToHost); printf("%g\n", r); for (int i = 0; i < 2; i++) { cudaFreeHost(h[i]); cudaFree(d[i]); cudaEventDestroy(e[i]); cudaStreamDestroy(s[i]); } cudaFree(t); }
