// image brightening with a wrong clamp AFTER the cast (classic)
#include <cstdio>
__global__ void bright(const unsigned char* a, unsigned char* o, float gain, float off, int n) { int i = threadIdx.x; if (i < n) { unsigned int v = (unsigned int)(a[i] * gain + off); o[i] = v > 255 ? 255 : v; } }
int main() { unsigned char h[64], *a, *o; for (int i = 0; i < 64; i++) h[i] = i * 4; cudaMalloc(&a, 64); cudaMalloc(&o, 64); cudaMemcpy(a, h, 64, cudaMemcpyHostToDevice); bright<<<1, 64>>>(a, o, 1.5f, -60.f, 64); cudaMemcpy(h, o, 64, cudaMemcpyDeviceToHost); printf("%d %d (0 126 on a GPU)\n", h[2], h[31]); cudaFree(a); cudaFree(o); }
