// event in a loop: timing of a kernel with the stop event recorded in another stream
#include <cstdio>
__global__ void k(float* a) { for (int i = 0; i < 100; i++) a[threadIdx.x] += 1; }
int main() { float* a; cudaMalloc(&a, 128); cudaMemset(a, 0, 128); cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cudaDeviceSynchronize(); cudaEvent_t b, e; cudaEventCreate(&b); cudaEventCreate(&e); cudaEventRecord(b); k<<<1, 32, 0, s>>>(a); cudaEventRecord(e); cudaEventSynchronize(e); float ms; cudaEventElapsedTime(&ms, b, e); float h; cudaMemcpy(&h, a, 4, cudaMemcpyDeviceToHost); printf("%g %d\n", h, ms >= 0); cudaStreamDestroy(s); cudaEventDestroy(b); cudaEventDestroy(e); cudaFree(a); }
