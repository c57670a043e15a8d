// producer warp and consumer warps in shared memory: volatile flags behind __threadfence_block, __syncwarp inside warps
#include <cstdio>
__global__ void k(int* o) { __shared__ int buf[32]; __shared__ volatile int full; if (threadIdx.x == 0) full = 0; __syncthreads(); int w = threadIdx.x / 32, l = threadIdx.x % 32;
  if (w == 0) { buf[l] = l * l; __threadfence_block(); __syncwarp(); if (l == 0) full = 1; } else { if (l == 0) while (full == 0); __syncwarp(); __threadfence_block(); o[l] = buf[31 - l]; } }
int main() { int *o, h[32]; cudaMalloc(&o, 128); k<<<1, 64>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", h[0]); cudaFree(o); }
