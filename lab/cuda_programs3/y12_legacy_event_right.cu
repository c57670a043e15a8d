// right: an event in the legacy default stream waits for blocking streams
#include <cstdio>
__global__ void k(float* a) { a[blockIdx.x * 256 + threadIdx.x] = 3; }
int main() { float *a, *h; cudaMalloc(&a, 16384); cudaMallocHost(&h, 16384); cudaStream_t s; cudaStreamCreate(&s); cudaEvent_t e; cudaEventCreate(&e); k<<<16, 256, 0, s>>>(a); cudaMemcpyAsync(h, a, 16384, cudaMemcpyDeviceToHost, s); cudaEventRecord(e, 0); cudaEventSynchronize(e); printf("%g\n", h[7]); cudaFree(a); cudaFreeHost(h); cudaStreamDestroy(s); cudaEventDestroy(e); }
