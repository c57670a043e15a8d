// raw device pointers without a policy: Thrust takes them for the host's
#include <cstdio>
#include <thrust/sort.h>
#include <thrust/fill.h>
int main() { int *d, h[64]; cudaMalloc(&d, 256); for (int i = 0; i < 64; i++) h[i] = 64 - i; cudaMemcpy(d, h, 256, cudaMemcpyHostToDevice); thrust::sort(d, d + 64); cudaMemcpy(h, d, 256, cudaMemcpyDeviceToHost); printf("%d\n", h[0]); cudaFree(d); }
