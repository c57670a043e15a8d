// cudaFree of the parent's buffer in the kernel, cudaMalloc's error not looked at in the kernel
#include <cstdio>
__global__ void k(int* o) { o[threadIdx.x] = 1; __syncthreads(); if (threadIdx.x == 0) cudaFree(o); }
int main() { int *o; cudaMalloc(&o, 128); k<<<1, 32>>>(o); printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize())); cudaFree(o); }
