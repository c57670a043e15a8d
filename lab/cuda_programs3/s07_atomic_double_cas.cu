// a double's maximum by a loop of atomicCAS whose first read is plain
#include <cstdio>
__device__ void maxd(double* p, double v) { unsigned long long* q = (unsigned long long*)p; unsigned long long old = *q, assumed; do { assumed = old; if (__longlong_as_double(assumed) >= v) break; old = atomicCAS(q, assumed, __double_as_longlong(v)); } while (assumed != old); }
__global__ void k(const double* a, double* o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) maxd(o, a[i]); }
int main() { double h[512], *a, *o, r = -1; for (int i = 0; i < 512; i++) h[i] = i * 37 % 512; cudaMalloc(&a, sizeof h); cudaMalloc(&o, 8); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cudaMemcpy(o, &r, 8, cudaMemcpyHostToDevice); k<<<4, 128>>>(a, o, 512); cudaMemcpy(&r, o, 8, cudaMemcpyDeviceToHost); printf("%g\n", r); cudaFree(a); cudaFree(o); }
