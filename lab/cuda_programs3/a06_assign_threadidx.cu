// threadIdx.x is changed
#include <cstdio>
__global__ void k(int* o) { while (threadIdx.x < 64) { o[threadIdx.x] = 1; threadIdx.x += blockDim.x; } }
int main() { int *o, h[64]; cudaMalloc(&o, 256); k<<<1, 32>>>(o); cudaMemcpy(h, o, 256, cudaMemcpyDeviceToHost); printf("%d\n", h[50]); cudaFree(o); }
