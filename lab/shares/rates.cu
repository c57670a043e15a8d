#include <cstdio>
#include <cmath>
#include <string>
#include <vector>
#include <algorithm>
#include "attention/key_parts.h"
#include "attention/problem.h"
#include "attention/rung.h"
#include "device/launch.h"
using T = __nv_bfloat16;
using attention::Problem; using attention::ForwardArgs;
using F = void (*)(const Problem&, const ForwardArgs&, cudaStream_t);
struct One { std::string name; F f; };
void run_prompt(const Problem& p, const ForwardArgs& a, cudaStream_t s);
void run_warpgroup(const Problem& p, const ForwardArgs& a, cudaStream_t s);
void run_even(const Problem& p, const ForwardArgs& a, cudaStream_t s);
namespace split_kv { int warpgroup_parts(const Problem& problem); }
int P[][7] = {
#include "problems.inc"
};
__global__ void fill(T* x, size_t n, unsigned seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
    float sum = 0;
    for (unsigned k = 0; k < 4; k++) {
      unsigned h = unsigned(i) * 4 + k + seed;
      h ^= h >> 16, h *= 0x7feb352d, h ^= h >> 15, h *= 0x846ca68b, h ^= h >> 16;
      sum += float(h) / 4294967296.f - .5f;
    }
    x[i] = __float2bfloat16(sum * 1.732f);
  }
}
int main() {
  const size_t all = size_t(131072) * 8192;
  T* t[4];
  for (int i = 0; i < 4; i++) cudaMalloc(&t[i], all * 2), fill<<<1024, 256>>>(t[i], all, 77777u * i);
  void *lse, *w, *flush;
  cudaMalloc(&lse, 256 << 20), cudaMalloc(&w, size_t(4) << 30), cudaMalloc(&flush, 256 << 20);
  cudaEvent_t a, b; cudaEventCreate(&a), cudaEventCreate(&b);
  for (auto& x : P) {
    Problem p;
    p.batch = x[0], p.heads = x[1], p.kv_heads = x[2], p.seq_q = x[3], p.seq_k = x[4], p.head_dim = x[5], p.dtype = attention::DType::bf16;
    p.mask = x[6] ? attention::Mask::causal : attention::Mask::none, p.scale = 1 / std::sqrt(float(x[5]));
    ForwardArgs fa{}; fa.q = t[0], fa.k = t[1], fa.v = t[2], fa.o = t[3], fa.lse = (float*)lse, fa.workspace = w;
    std::vector<One> vs = {{"prompt", run_prompt}, {"even", run_even}};
    if (p.head_dim <= 128 && p.seq_q * p.heads / p.kv_heads <= 8192) vs.push_back({"warpgroup", run_warpgroup});
    std::vector<std::vector<float>> each(vs.size());
    std::vector<float> slices(vs.size());
    for (int r = 0; r < 8; r++) for (size_t k = 0; k < vs.size(); k++) {
      const size_t i = (r + k) % vs.size();
      float ms;
      cudaMemsetAsync(flush, r, 256 << 20);
      cudaEventRecord(a), vs[i].f(p, fa, 0), cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
      if (r) each[i].push_back(ms);
    }
    printf("{\"batch\": %d, \"heads\": %d, \"kv_heads\": %d, \"seq_q\": %d, \"seq_k\": %d, \"head_dim\": %d, \"causal\": %s, \"us\": {", x[0], x[1], x[2], x[3], x[4], x[5], x[6] ? "true" : "false");
    for (size_t i = 0; i < vs.size(); i++) std::sort(each[i].begin(), each[i].end()), printf("%s\"%s\": %.1f", i ? ", " : "", vs[i].name.c_str(), 1e3 * each[i][3]);
    printf("}, \"us_in_slices\": {");
    for (int round = 0; round < 2; round++) for (size_t k = 0; k < vs.size(); k++) {
      const size_t i = round ? k : vs.size() - 1 - k;
      float ms = 1e3 * 0 + each[i][3];
      const int n = int(6 / ms) + 2;
      cudaEventRecord(a);
      for (int r = 0; r < n; r++) vs[i].f(p, fa, 0);
      cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
      slices[i] += ms / n / 2;
    }
    for (size_t i = 0; i < vs.size(); i++) printf("%s\"%s\": %.1f", i ? ", " : "", vs[i].name.c_str(), 1e3 * slices[i]);
    printf("}}\n");
    if (cudaError_t e = cudaDeviceSynchronize()) { printf("%s\n", cudaGetErrorString(e)); return 1; }
  }
}
