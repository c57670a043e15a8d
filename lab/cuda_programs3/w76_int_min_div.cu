// modulo zero in a hash, int overflow in an LCG
#include <cstdio>
__global__ void k(int* o, int buckets) { o[threadIdx.x] = (threadIdx.x * 31) % buckets; }
int main() { int *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o, 0); cudaError_t e = cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d %s\n", h[1], cudaGetErrorString(e)); cudaFree(o); }
