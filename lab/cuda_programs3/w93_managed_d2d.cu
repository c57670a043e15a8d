// asynchronous copy from device to managed memory; the host reads at once
#include <cstdio>
__global__ void fill(int* a) { a[blockIdx.x * 256 + threadIdx.x] = 7; }
int main() { int n = 4096; int *a, *d; cudaMallocManaged(&a, n * 4); cudaMalloc(&d, n * 4); cudaStream_t s; cudaStreamCreate(&s); fill<<<16, 256, 0, s>>>(d); cudaMemcpyAsync(a, d, n * 4, cudaMemcpyDefault, s); printf("%d\n", a[100]); cudaStreamSynchronize(s); cudaStreamDestroy(s); cudaFree(a); cudaFree(d); }
