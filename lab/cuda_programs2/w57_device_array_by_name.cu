// a __device__ array handed to the kernel by its name; never copied by symbol
#include <cstdio>
__device__ float buf[32];
__global__ void k(float* b, float* o) { b[threadIdx.x] = threadIdx.x; __syncthreads(); o[threadIdx.x] = b[31 - threadIdx.x]; }
int main() { float* o; cudaMallocManaged(&o, 128); k<<<1, 32>>>(buf, o); cudaDeviceSynchronize(); printf("%g\n", o[1]); cudaFree(o); }
