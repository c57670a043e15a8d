// the wait was asked for before the event was recorded for the second time
#include <cstdio>
__global__ void produce(int* a, int v) { a[blockIdx.x * 256 + threadIdx.x] = v; }
__global__ void consume(const int* a, int* b) { int i = blockIdx.x * 256 + threadIdx.x; b[i] = a[i]; }
int main() { int *a, *b, r; cudaMalloc(&a, 16384); cudaMalloc(&b, 16384); cudaStream_t s, t; cudaStreamCreate(&s); cudaStreamCreate(&t); cudaEvent_t e; cudaEventCreateWithFlags(&e, cudaEventDisableTiming); produce<<<16, 256, 0, s>>>(a, 1); cudaEventRecord(e, s); cudaStreamWaitEvent(t, e); produce<<<16, 256, 0, s>>>(a, 2); cudaEventRecord(e, s); consume<<<16, 256, 0, t>>>(a, b); cudaDeviceSynchronize(); cudaMemcpy(&r, b, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(a); cudaFree(b); cudaStreamDestroy(s); cudaStreamDestroy(t); cudaEventDestroy(e); }
