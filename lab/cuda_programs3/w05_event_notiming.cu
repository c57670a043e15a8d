// event made with cudaEventDisableTiming and used for timing
#include <cstdio>
__global__ void k(float* a) { a[threadIdx.x] = 1; }
int main() { float* a; cudaMalloc(&a, 128); cudaEvent_t e, f; cudaEventCreateWithFlags(&e, cudaEventDisableTiming); cudaEventCreateWithFlags(&f, cudaEventDisableTiming);
  cudaEventRecord(e); k<<<1, 32>>>(a); cudaEventRecord(f); cudaEventSynchronize(f); float ms = -1; cudaEventElapsedTime(&ms, e, f); printf("timed %d\n", ms >= 0);
  cudaEventDestroy(e); cudaEventDestroy(f); cudaFree(a); }
