// right: atomicExch as an initialisation, its old value unused; shared and global memory
#include <cstdio>
__global__ void init(int* c) { atomicExch(&c[threadIdx.x], 0); }
__global__ void count(int* c) { atomicAdd(&c[threadIdx.x % 4], 1); }
__global__ void sh(int* o) { __shared__ int s; if (threadIdx.x == 0) atomicExch(&s, 0); __syncthreads(); atomicAdd(&s, 1); __syncthreads(); if (threadIdx.x == 0) *o = s; }
int main() { int *c, *o, r, q; cudaMalloc(&c, 16); cudaMalloc(&o, 4); init<<<1, 4>>>(c); count<<<1, 64>>>(c); cudaMemcpy(&q, c, 4, cudaMemcpyDeviceToHost); printf("%d\n", q); sh<<<1, 64>>>(o); cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(c); cudaFree(o); }
