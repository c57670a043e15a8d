// an argument of 40000 bytes: above the limit of 32764
#include <cstdio>
struct Big { float w[10000]; };
__global__ void k(Big b, float* o) { o[threadIdx.x] = b.w[threadIdx.x * 300]; }
int main() { static Big b; for (int i = 0; i < 10000; i++) b.w[i] = i; float* o; cudaMallocManaged(&o, 128); k<<<1, 32>>>(b, o); cudaDeviceSynchronize(); printf("%g\n", o[3]); cudaFree(o); }
