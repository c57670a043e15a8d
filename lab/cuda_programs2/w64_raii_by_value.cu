// a class that frees in its destructor, passed to the kernel by value: the copy frees it
#include <cstdio>
struct Vec { float* p; int n; Vec(int n) : n(n) { cudaMallocManaged(&p, n * 4); } ~Vec() { cudaFree(p); } };
__global__ void scale(Vec v, float s) { int i = threadIdx.x; if (i < v.n) v.p[i] *= s; }
int main() { Vec v(32); for (int i = 0; i < 32; i++) v.p[i] = i; scale<<<1, 32>>>(v, 2.f); scale<<<1, 32>>>(v, 2.f); cudaDeviceSynchronize(); printf("%s\n", cudaGetErrorString(cudaGetLastError())); }
