// a shuffle with a width that is no power of two
#include <cstdio>
__global__ void k(int* o) { int v = threadIdx.x; for (int d = 12; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d, 24); o[threadIdx.x] = v; }
int main() { int *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", h[0]); cudaFree(o); }
