// inline PTX: registers of integers in an addition of floats (ptxas refuses)
#include <cstdio>
__global__ void k(int* o) { int f = 0; asm("add.f32 %0, %1, %2;" : "=r"(f) : "r"(1), "r"(2)); o[threadIdx.x] = f; }
int main() { int *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", h[2]); cudaFree(o); }
