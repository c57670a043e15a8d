// cudaMallocPitch, and the kernel forgets the pitch
#include <cstdio>
__global__ void k(float* a, int w, int h) { int x = threadIdx.x, y = blockIdx.x; if (x < w && y < h) a[y * w + x] = y; }
int main() { const int w = 100, h = 8; float* d; size_t pitch; float o[w * h]; cudaMallocPitch(&d, &pitch, w * 4, h); k<<<h, 128>>>(d, w, h); cudaMemcpy2D(o, w * 4, d, pitch, w * 4, h, cudaMemcpyDeviceToHost); printf("%g\n", o[3 * w]); cudaFree(d); }
