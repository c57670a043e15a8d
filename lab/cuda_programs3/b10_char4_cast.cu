// right: saturating by fmin/fmax before the cast, texture-like clamped reads
#include <cstdio>
__global__ void k(const unsigned char* a, unsigned char* o, int n) { int i = threadIdx.x; float v = 5.f * a[i] - 2.f * a[max(i - 1, 0)] - 2.f * a[min(i + 1, n - 1)]; o[i] = (unsigned char)fminf(fmaxf(v, 0.f), 255.f); }
int main() { unsigned char h[64], *a, *o; for (int i = 0; i < 64; i++) h[i] = i % 2 ? 100 : 10; cudaMalloc(&a, 64); cudaMalloc(&o, 64); cudaMemcpy(a, h, 64, cudaMemcpyHostToDevice); k<<<1, 64>>>(a, o, 64); cudaMemcpy(h, o, 64, cudaMemcpyDeviceToHost); printf("%d %d\n", h[1], h[2]); cudaFree(a); cudaFree(o); }
