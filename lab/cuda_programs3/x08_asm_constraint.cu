// inline PTX: a float behind "=r"
#include <cstdio>
__global__ void k(float* o) { float f = 0; asm("add.f32 %0, %1, %2;" : "=r"(f) : "r"(1.5f), "r"(2.f)); o[threadIdx.x] = f; }
int main() { float *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[2]); cudaFree(o); }
