// a cooperative launch of 400 blocks with 100 KB of shared memory each: two fit on a multiprocessor, 264 in all
#include <cstdio>
#include <cooperative_groups.h>
__global__ void k(float* o) { extern __shared__ float d[]; d[threadIdx.x] = blockIdx.x; cooperative_groups::this_grid().sync(); o[blockIdx.x * 32 + threadIdx.x] = d[threadIdx.x]; }
int main() { float* o; cudaMalloc(&o, 400 * 128); cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 102400); void* a[] = {&o}; cudaError_t e = cudaLaunchCooperativeKernel((void*)k, dim3(400), dim3(32), a, 102400, 0); printf("%s\n", cudaGetErrorName(e)); cudaDeviceSynchronize(); cudaFree(o); }
