// atomics at addresses that are no multiples of their size
#include <cstdio>
__global__ void k(unsigned char* p) { atomicAdd((int*)(p + 1), 1); }
int main() { unsigned char* p; cudaMalloc(&p, 16); cudaMemset(p, 0, 16); k<<<1, 32>>>(p); printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize())); cudaFree(p); }
