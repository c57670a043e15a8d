// __constant__ filled by cudaMemcpy to the address of cudaGetSymbolAddress with an offset in elements instead of bytes
#include <cstdio>
__constant__ float c[8];
__global__ void k(float* o) { o[threadIdx.x] = c[threadIdx.x]; }
int main() { float h[8] = {0, 1, 2, 3, 4, 5, 6, 7}, *o; cudaMemcpyToSymbol(c, h, 16); cudaMemcpyToSymbol(c, h + 4, 16, 4); cudaMalloc(&o, 32); k<<<1, 8>>>(o); cudaMemcpy(h, o, 32, cudaMemcpyDeviceToHost); printf("%g %g\n", h[4], h[7]); cudaFree(o); }
