// a double's conversion to unsigned and to unsigned char for a histogram of grey values
#include <cstdio>
__global__ void k(const double* a, unsigned* bins, int n) { int i = threadIdx.x; if (i < n) { unsigned b = (unsigned)(a[i] * 256); if (b >= 256) b = 255; atomicAdd(&bins[b], 1u); } }
int main() { double h[64]; for (int i = 0; i < 64; i++) h[i] = (i - 8) / 56.; double* a; unsigned *b, r[256]; cudaMalloc(&a, sizeof h); cudaMalloc(&b, sizeof r); cudaMemset(b, 0, sizeof r); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); k<<<1, 64>>>(a, b, 64); cudaMemcpy(r, b, sizeof r, cudaMemcpyDeviceToHost); printf("%u %u (9 1 on a GPU)\n", r[0], r[255]); cudaFree(a); cudaFree(b); }
