// a stream and a __device__ variable across cudaDeviceReset
#include <cstdio>
__device__ int total = 5;
__global__ void k() { atomicAdd(&total, 1); }
int main() { cudaStream_t s; cudaStreamCreate(&s); k<<<1, 32, 0, s>>>(); cudaStreamSynchronize(s); cudaDeviceReset(); int r; cudaMemcpyFromSymbol(&r, total, 4); printf("%d (5 on a GPU)\n", r); k<<<1, 1, 0, s>>>(); printf("%s\n", cudaGetErrorString(cudaGetLastError())); }
