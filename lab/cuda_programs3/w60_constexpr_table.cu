// constexpr table of the host, indexed by a thread
#include <cstdio>
constexpr float W[5] = {1, 4, 6, 4, 1};
constexpr int DX[4] = {1, 0, -1, 0};
__global__ void k(float* o) { float s = 0; for (int i = 0; i < 5; i++) s += W[i]; o[threadIdx.x] = s + DX[threadIdx.x % 4]; }
int main() { float *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[2]); cudaFree(o); }
