// all threads write the tile; thread 0 fences and sets the flag, with no __syncthreads() before
#include <cstdio>
__global__ void k(int* data, volatile int* flag, int* out) { int b = blockIdx.x, t = threadIdx.x; data[b * 64 + t] = b + t; if (t == 0) { __threadfence(); flag[b] = 1; } if (b > 0) { if (t == 0) { while (flag[b - 1] == 0) {} __threadfence(); } __syncthreads(); out[b * 64 + t] = data[(b - 1) * 64 + 63 - t]; } }
int main() { int *d, *f, *o; cudaMalloc(&d, 1024); cudaMalloc(&f, 16); cudaMallocManaged(&o, 1024); cudaMemset(f, 0, 16); k<<<4, 64>>>(d, f, o); cudaDeviceSynchronize(); printf("%d\n", o[64]); cudaFree(d); cudaFree(f); cudaFree(o); }
