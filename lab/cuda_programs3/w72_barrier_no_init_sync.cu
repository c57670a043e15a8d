// cuda::barrier used without a barrier after its initialisation
#include <cstdio>
#include <cuda/barrier>
__global__ void k(int* o) { __shared__ cuda::barrier<cuda::thread_scope_block> b; if (threadIdx.x == 0) init(&b, blockDim.x); b.arrive_and_wait(); o[threadIdx.x] = 1; }
int main() { int *o; cudaMalloc(&o, 256); k<<<1, 64>>>(o); printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize())); cudaFree(o); }
