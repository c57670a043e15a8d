// __syncwarp with a mask of the other half; __shfl_sync whose mask lacks the source
#include <cstdio>
__global__ void k(int* o) { __shared__ int s[32]; int l = threadIdx.x; s[l] = l; if (l >= 16) { __syncwarp(0xffff); o[l] = s[l ^ 1]; } else o[l] = __shfl_sync(0xffff, l, 20); }
int main() { int *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", h[3]); cudaFree(o); }
