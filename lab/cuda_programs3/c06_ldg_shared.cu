// __ldg of shared memory
#include <cstdio>
__global__ void k(int* o) { __shared__ int s[32]; s[threadIdx.x] = threadIdx.x; __syncthreads(); o[threadIdx.x] = __ldg(&s[31 - threadIdx.x]); }
int main() { int *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); printf("%s\n", cudaGetErrorString(cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost))); cudaFree(o); }
