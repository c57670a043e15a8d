// two stages by cuda::pipeline
#include <cstdio>
#include <cooperative_groups.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
__global__ void k(const float* a, float* o, int tiles) { constexpr int S = 2; __shared__ float s[S][128]; __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, S> st; auto b = cg::this_thread_block(); auto p = cuda::make_pipeline(b, &st); float x = 0;
  for (int c = 0, f = 0; c < tiles; c++) { for (; f < tiles && f < c + S; f++) { p.producer_acquire(); cuda::memcpy_async(b, s[f % S], a + f * 128, 512, p); p.producer_commit(); } p.consumer_wait(); x += s[c % S][127 - threadIdx.x]; p.consumer_release(); } o[threadIdx.x] = x; }
int main() { float h[1024]; for (auto& x : h) x = 1; float *a, *o; cudaMalloc(&a, sizeof h); cudaMalloc(&o, 512); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); k<<<1, 128>>>(a, o, 8); cudaMemcpy(h, o, 512, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cudaFree(a); cudaFree(o); }
