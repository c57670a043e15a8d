// inline PTX: ld.shared with a generic address
#include <cstdio>
__global__ void k(int* o) { __shared__ int s[32]; s[threadIdx.x] = threadIdx.x; __syncthreads(); int v; asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "l"(&s[31 - threadIdx.x])); o[threadIdx.x] = v; }
int main() { int *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); printf("%s\n", cudaGetErrorString(cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost))); printf("%d\n", h[0]); cudaFree(o); }
