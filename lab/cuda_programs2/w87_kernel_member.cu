// a kernel that is a static member of a class: nvcc refuses
#include <cstdio>
struct Sim { float* d; static __global__ void step(float* d) { d[threadIdx.x] += 1; } void run() { step<<<1, 32>>>(d); } };
int main() { Sim s; cudaMallocManaged(&s.d, 128); for (int i = 0; i < 32; i++) s.d[i] = i; s.run(); cudaDeviceSynchronize(); printf("%g\n", s.d[3]); cudaFree(s.d); }
