// 40 KB of static and 20 KB of dynamic shared memory without an opt-in
#include <cstdio>
__global__ void k(float* o) { __shared__ float s[10240]; extern __shared__ float d[]; for (int i = threadIdx.x; i < 10240; i += 256) s[i] = i; d[threadIdx.x] = 1; __syncthreads(); o[threadIdx.x] = s[10239 - threadIdx.x] + d[255 - threadIdx.x]; }
int main() { float *o, h[256] = {}; cudaMalloc(&o, 1024); k<<<1, 256, 20480>>>(o); cudaMemcpy(h, o, 1024, cudaMemcpyDeviceToHost); printf("%g\n", h[1]); cudaFree(o); }
