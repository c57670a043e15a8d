// std::numeric_limits in a kernel
#include <cstdio>
#include <limits>
__global__ void k(const float* a, float* o, int n) { float m = -std::numeric_limits<float>::max(); for (int i = 0; i < n; i++) m = fmaxf(m, a[i]); *o = m; }
int main() { float h[4] = {1, 5, 2, 3}, *a, *o; cudaMalloc(&a, 16); cudaMalloc(&o, 4); cudaMemcpy(a, h, 16, cudaMemcpyHostToDevice); k<<<1, 1>>>(a, o, 4); cudaMemcpy(h, o, 4, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cudaFree(a); cudaFree(o); }
