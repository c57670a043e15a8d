// std::array's operator[] in a kernel: refused by nvcc without --expt-relaxed-constexpr
#include <cstdio>
#include <array>
__global__ void k(std::array<float, 4> w, float* o) { float s = 0; for (int i = 0; i < 4; i++) s += w[i]; o[threadIdx.x] = s; }
int main() { float *o, h[4]; cudaMalloc(&o, 16); k<<<1, 4>>>({1, 2, 3, 4}, o); cudaMemcpy(h, o, 16, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cudaFree(o); }
