// a negative float to size_t / unsigned as an index, clamped by min: 0 on a GPU, the last element here
#include <cstdio>
__global__ void lookup(const float* table, const float* x, float* o, unsigned n) { unsigned i = min((unsigned)(x[threadIdx.x] * 10.f), n - 1); o[threadIdx.x] = table[i]; }
int main() { float t[10], h[4] = {-.3f, .25f, .95f, 2.f}, *a, *x, *o; for (int i = 0; i < 10; i++) t[i] = i; cudaMalloc(&a, 40); cudaMalloc(&x, 16); cudaMalloc(&o, 16); cudaMemcpy(a, t, 40, cudaMemcpyHostToDevice); cudaMemcpy(x, h, 16, cudaMemcpyHostToDevice); lookup<<<1, 4>>>(a, x, o, 10); cudaMemcpy(h, o, 16, cudaMemcpyDeviceToHost); printf("%g %g %g %g (0 2 9 9 on a GPU)\n", h[0], h[1], h[2], h[3]); cudaFree(a); cudaFree(x); cudaFree(o); }
