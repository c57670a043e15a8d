// host code uses threadIdx and a __device__ helper's builtins
#include <cstdio>
int global_id() { return blockIdx.x * blockDim.x + threadIdx.x; }
__global__ void k(int* a) { a[threadIdx.x] = threadIdx.x; }
int main() { int* a; cudaMallocManaged(&a, 128); k<<<1, 32>>>(a); cudaDeviceSynchronize(); printf("%d %d\n", global_id(), a[3]); cudaFree(a); }
