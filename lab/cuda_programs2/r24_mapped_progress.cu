// host polls a volatile counter in mapped memory while the kernel runs
#include <cstdio>
__global__ void k(volatile int* progress, float* a, int n) { for (int s = 0; s < n; s++) { a[blockIdx.x * 32 + threadIdx.x] += s; __syncthreads(); if (threadIdx.x == 0) { __threadfence_system(); atomicAdd((int*)progress, 1); } } }
int main() { volatile int* p; int* dp; cudaHostAlloc((void**)&p, 4, cudaHostAllocMapped); *p = 0; cudaHostGetDevicePointer((void**)&dp, (void*)p, 0); float* a; cudaMalloc(&a, 1024); cudaMemset(a, 0, 1024); k<<<8, 32>>>(dp, a, 10); int last = -1; while (*p < 80) if (*p != last) last = *p; cudaDeviceSynchronize(); printf("%d\n", *p); cudaFree(a); cudaFreeHost((void*)p); }
