#include <cstdio>
#include <cstdlib>
__global__ void k(float* a, int n) { int i = threadIdx.x; if (i < n) a[i] = i; }
int main() { const int n = 64; float *h = (float*)calloc(n, 4), *d; cudaMalloc(&d, n * 4); k<<<1, n>>>(d, n); cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost); printf("%g\n", h[5]); cudaFree(d); free(h); }
