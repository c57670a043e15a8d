// device variables with initialisers that are calls: nvcc refuses (dynamic initialisation)
#include <cstdio>
#include <cmath>
__device__ float3 gravity = make_float3(0.f, -9.81f, 0.f);
__constant__ float root = sqrtf(2.f);
__global__ void k(float* o) { o[threadIdx.x] = gravity.y * root * threadIdx.x; }
int main() { float* o; cudaMallocManaged(&o, 128); k<<<1, 32>>>(o); cudaDeviceSynchronize(); printf("%g\n", o[5]); cudaFree(o); }
