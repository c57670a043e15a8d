// atomicAdd_block on a counter of all blocks
#include <cstdio>
__global__ void k(int* c) { atomicAdd_block(c, 1); }
int main() { int *c, h; cudaMalloc(&c, 4); cudaMemset(c, 0, 4); k<<<64, 128>>>(c); cudaMemcpy(&h, c, 4, cudaMemcpyDeviceToHost); printf("%d\n", h); cudaFree(c); }
