// conversions out of range: a GPU saturates and makes 0 of NaN
#include <cstdio>
__global__ void k(const float* a, int* o, unsigned* u, long long* l) { int i = threadIdx.x; o[i] = (int)a[i]; u[i] = (unsigned)a[i]; l[i] = (long long)a[i]; }
int main() { float h[4] = {1e20f, -1e20f, 0.0f / 0.0f, -3.5f}; float* a; int *o, r[4]; unsigned *u, s[4]; long long *l, t[4]; cudaMalloc(&a, 16); cudaMalloc(&o, 16); cudaMalloc(&u, 16); cudaMalloc(&l, 32); cudaMemcpy(a, h, 16, cudaMemcpyHostToDevice); k<<<1, 4>>>(a, o, u, l);
  cudaMemcpy(r, o, 16, cudaMemcpyDeviceToHost); cudaMemcpy(s, u, 16, cudaMemcpyDeviceToHost); cudaMemcpy(t, l, 32, cudaMemcpyDeviceToHost); for (int i = 0; i < 4; i++) printf("%d %u %lld\n", r[i], s[i], t[i]); cudaFree(a); cudaFree(o); cudaFree(u); cudaFree(l); }
