// the pitch in bytes used as a number of floats
#include <cstdio>
__global__ void k(float* a, size_t pitch, int w, int h) { int x = threadIdx.x, y = blockIdx.x; if (x < w && y < h) a[y * pitch + x] = x + y; }
int main() { int w = 20, h = 16; float* a; size_t p; cudaMallocPitch(&a, &p, w * 4, h); k<<<16, 32>>>(a, p, w, h); float r[16][20]; cudaMemcpy2D(r, 80, a, p, 80, h, cudaMemcpyDeviceToHost); printf("%g\n", r[1][1]); cudaFree(a); }
