// right: a kernel spins on a flag in mapped memory that the host sets after the launch
#include <cstdio>
__global__ void wait(volatile int* flag, int* o) { while (*flag == 0); *o = 42; }
int main() { int *f, *d, *o, r; cudaHostAlloc(&f, 4, cudaHostAllocMapped); *f = 0; cudaHostGetDevicePointer(&d, f, 0); cudaMalloc(&o, 4); wait<<<1, 1>>>(d, o); *(volatile int*)f = 1; cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFreeHost(f); cudaFree(o); }
