// threadIdx.x - 1 >= 0 is always true
#include <cstdio>
__global__ void k(const float* a, float* o, int n) { unsigned i = threadIdx.x; float s = a[i]; if (i - 1 >= 0) s += a[i - 1]; if (i + 1 < n) s += a[i + 1]; o[i] = s; }
int main() { float h[64] = {}; float *a, *o; cudaMalloc(&a, 256); cudaMalloc(&o, 256); cudaMemcpy(a, h, 256, cudaMemcpyHostToDevice); k<<<1, 64>>>(a, o, 64); cudaMemcpy(h, o, 256, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cudaFree(a); cudaFree(o); }
