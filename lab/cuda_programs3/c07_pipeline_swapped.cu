// __pipeline_memcpy_async from shared to global memory
#include <cstdio>
#include <cuda_pipeline.h>
__global__ void k(int* o) { __shared__ int s[32]; s[threadIdx.x] = threadIdx.x; __syncthreads(); __pipeline_memcpy_async(&o[threadIdx.x], &s[threadIdx.x], 4); __pipeline_commit(); __pipeline_wait_prior(0); }
int main() { int *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); printf("%s\n", cudaGetErrorString(cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost))); cudaFree(o); }
