// cudaMemcpy2D: width given in elements
#include <cstdio>
__global__ void k(float* a, size_t pitch, int w, int h) { int x = threadIdx.x, y = blockIdx.x; if (x < w && y < h) ((float*)((char*)a + y * pitch))[x] *= 2; }
int main() { const int w = 20, h = 16; float* a; size_t p; float r[h][w]; for (auto& q : r) for (float& x : q) x = 1; cudaMallocPitch(&a, &p, w * 4, h); cudaMemcpy2D(a, p, r, w * 4, w, h, cudaMemcpyHostToDevice);
  k<<<16, 32>>>(a, p, w, h); cudaMemcpy2D(r, w * 4, a, p, w * 4, h, cudaMemcpyDeviceToHost); printf("%g %g\n", r[1][1], r[1][19]); cudaFree(a); }
