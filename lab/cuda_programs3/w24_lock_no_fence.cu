// lock by atomicCAS and atomicExch, no fence; plain data between
#include <cstdio>
__device__ int lock = 0; __device__ int value = 0;
__global__ void k(int* out) { if (threadIdx.x == 0) { while (atomicCAS(&lock, 0, 1) != 0); value = value + 1; atomicExch(&lock, 0); } }
int main() { int *o, r; cudaMalloc(&o, 4); k<<<64, 32>>>(o); cudaMemcpyFromSymbol(&r, value, 4); printf("%d\n", r); cudaFree(o); }
