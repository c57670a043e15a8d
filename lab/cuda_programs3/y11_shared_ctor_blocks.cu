// a shared object with a constructor, four blocks (nvcc does not run it: a warning)
#include <cstdio>
struct Queue { int head, tail; int item[32]; __device__ Queue() { head = tail = 0; } __device__ void push(int v) { item[atomicAdd(&tail, 1)] = v; } };
__global__ void k(int* o) { __shared__ Queue q; __syncthreads(); if (threadIdx.x % 2) q.push(threadIdx.x); __syncthreads(); if (!threadIdx.x) o[blockIdx.x] = q.tail; }
int main() { int *o, h[4]; cudaMalloc(&o, 16); k<<<4, 32>>>(o); cudaMemcpy(h, o, 16, cudaMemcpyDeviceToHost); printf("%d %d %d %d\n", h[0], h[1], h[2], h[3]); cudaFree(o); }
