// thread 0 waits for the flag, the others of its block do not wait for thread 0
#include <cstdio>
__global__ void k(int* data, volatile int* flag, int* out) { int b = blockIdx.x, t = threadIdx.x; data[b * 256 + t] = b + t; __syncthreads(); if (t == 0) { __threadfence(); flag[b] = 1; } if (b > 0) { if (t == 0) { while (flag[b - 1] == 0) {} __threadfence(); } out[b * 256 + t] = data[(b - 1) * 256 + 255 - t]; } }
int main() { int *d, *f, *o; cudaMalloc(&d, 4096); cudaMalloc(&f, 16); cudaMallocManaged(&o, 4096); cudaMemset(f, 0, 16); k<<<4, 256>>>(d, f, o); cudaDeviceSynchronize(); printf("%d\n", o[64]); cudaFree(d); cudaFree(f); cudaFree(o); }
