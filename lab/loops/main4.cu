#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <string>
#include <vector>
#include <algorithm>
#include "attention/problem.h"
#include "attention/rung.h"
#include "device/launch.h"
using T = __nv_bfloat16;
using attention::Problem; using attention::ForwardArgs; using attention::BackwardArgs;
#define V(n) namespace hopper { void forward_##n(const Problem& p, const ForwardArgs& args, cudaStream_t stream, bool polynomial); }
VARIANTS
#undef V
namespace hopper { extern const attention::Rung beside; void forward_beside(const Problem& p, const ForwardArgs& args, cudaStream_t stream, bool) { beside.forward.run(p, args, stream); } }
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
int main(int argc, char** argv) {
  const size_t all = size_t(16384) * 2048;
  T* t[8];
  for (int i = 0; i < 8; i++) cudaMalloc(&t[i], all * 2), fill<<<1024, 256>>>(t[i], all, 77777u * i);
  void *lse, *w, *flush;
  cudaMalloc(&lse, 64 << 20), cudaMalloc(&w, size_t(2) << 30), cudaMalloc(&flush, 256 << 20);
  cudaEvent_t a, b; cudaEventCreate(&a), cudaEventCreate(&b);
  using F = void (*)(const Problem&, const ForwardArgs&, cudaStream_t, bool);
  struct One { std::string name; F f; bool flag; void (*back)(const Problem&, const BackwardArgs&, cudaStream_t); };
  std::vector<One> f64, f128, bw;
#define V(n) f128.push_back({#n, hopper::forward_##n, true, nullptr}), f64.push_back({#n, hopper::forward_##n, true, nullptr});
VARIANTS
  f64.push_back({"beside", hopper::forward_beside, true, nullptr});
  const int rounds = argc > 1 ? atoi(argv[1]) : 5;
  const auto measure = [&](std::vector<One>& vs, int D, int n, bool causal, int kv) {
    Problem p;
    p.batch = std::max(1, 16384 / n), p.heads = 2048 / D, p.kv_heads = kv ? kv : p.heads, p.seq_q = p.seq_k = n, p.head_dim = D;
    p.dtype = attention::DType::bf16, p.mask = causal ? attention::Mask::causal : attention::Mask::none;
    p.scale = 1 / std::sqrt(float(D));
    ForwardArgs fa{}; fa.q = t[0], fa.k = t[1], fa.v = t[2], fa.o = t[3], fa.lse = (float*)lse, fa.workspace = w;
    BackwardArgs ba{}; ba.q = t[0], ba.k = t[1], ba.v = t[2], ba.o = t[3], ba.lse = (float*)lse, ba.d_o = t[4], ba.dq = t[5], ba.dk = t[6], ba.dv = t[7], ba.workspace = w;
    const bool back = vs[0].back;
    std::vector<std::vector<float>> each(vs.size()), slices(vs.size());
    float typical = 1;
    for (int round = 0; round <= rounds; round++) for (size_t k = 0; k < vs.size(); k++) {
      const size_t i = round % 2 ? k : vs.size() - 1 - k;
      const auto once = [&] { if (back) vs[i].back(p, ba, 0); else vs[i].f(p, fa, 0, vs[i].flag); };
      for (int r = 0; r < 3; r++) {
        cudaMemsetAsync(flush, r, 256 << 20);
        float ms;
        cudaEventRecord(a), once(), cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
        if (round) each[i].push_back(ms); typical = ms;
      }
      const int count = int(12 / typical) + 2;
      cudaEventRecord(a);
      for (int r = 0; r < count; r++) once();
      cudaEventRecord(b), cudaEventSynchronize(b);
      float ms; cudaEventElapsedTime(&ms, a, b);
      if (round) slices[i].push_back(ms / count);
    }
    const double flop = (back ? 10. : 4.) * p.batch * p.heads * n * double(n) * D * (causal ? .5 : 1);
    std::vector<T> first(1 << 16), now(1 << 16);
    for (size_t i = 0; i < vs.size(); i++) {
      T* const o = back ? t[5] : t[3];
      cudaMemset(o, 0, all * 2);
      if (back) vs[i].back(p, ba, 0); else vs[i].f(p, fa, 0, vs[i].flag);
      cudaMemcpy(now.data(), o + all / 2, now.size() * 2, cudaMemcpyDeviceToHost);
      if (!i) first = now;
      double d = 0, f = 0;
      for (size_t j = 0; j < now.size(); j++) { const double x = __bfloat162float(first[j]), y = __bfloat162float(now[j]); d += (x - y) * (x - y), f += x * x; }
      std::sort(each[i].begin(), each[i].end()), std::sort(slices[i].begin(), slices[i].end());
      printf("{\"direction\": \"%s\", \"head_dim\": %d, \"seq\": %d, \"causal\": %s, \"name\": \"%s\", \"tflops\": %.1f, \"tflops_in_slices\": %.1f, \"us\": %.2f, \"us_in_slices\": %.2f, \"off\": %.4f}\n", back ? "backward" : "forward", D, n, causal ? "true" : "false", vs[i].name.c_str(), flop / each[i][each[i].size() / 2] * 1e-9, flop / slices[i][slices[i].size() / 2] * 1e-9, 1e3 * each[i][each[i].size() / 2], 1e3 * slices[i][slices[i].size() / 2], std::sqrt(d / f));
    }
    fflush(stdout);
  };
  for (int n : {512, 2048, 8192, 16384}) for (bool causal : {false, true}) measure(f64, 64, n, causal, 0);
  if (cudaError_t e = cudaDeviceSynchronize()) printf("%s\n", cudaGetErrorString(e));
}
