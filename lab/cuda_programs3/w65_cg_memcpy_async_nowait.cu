// cg::memcpy_async without cg::wait, only a barrier
#include <cstdio>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void k(const float* a, float* o) { __shared__ float s[64]; auto b = cg::this_thread_block(); cg::memcpy_async(b, s, a, sizeof s); b.sync(); o[threadIdx.x] = s[63 - threadIdx.x]; }
int main() { float h[64]; for (auto& x : h) x = 1; float *a, *o; cudaMalloc(&a, 256); cudaMalloc(&o, 256); cudaMemcpy(a, h, 256, cudaMemcpyHostToDevice); k<<<1, 64>>>(a, o); cudaMemcpy(h, o, 256, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cudaFree(a); cudaFree(o); }
