// a macro that depends on __CUDA_ARCH__: the host launches with another tile than the kernel uses
#include <cstdio>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
#define TILE 32
#else
#define TILE 16
#endif
__global__ void k(int* o) { if (threadIdx.x < TILE) o[blockIdx.x * TILE + threadIdx.x] = TILE; }
int main() { int n = 64, h[64] = {}, *o; cudaMalloc(&o, 256); cudaMemset(o, 0, 256); k<<<n / TILE, TILE>>>(o); cudaError_t e = cudaMemcpy(h, o, 256, cudaMemcpyDeviceToHost); printf("%d %d %d %s\n", h[0], h[16], h[63], cudaGetErrorString(e)); cudaFree(o); }
