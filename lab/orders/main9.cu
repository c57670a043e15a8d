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
using attention::Problem; using attention::ForwardArgs;
using F = void (*)(const Problem&, const ForwardArgs&, cudaStream_t);
struct One { std::string name; F f; };
#define V(n) void run_##n(const Problem& p, const ForwardArgs& args, cudaStream_t stream);
V(k0) V(k4) V(k8) V(j2) V(k2) V(b0) V(b4) V(b8)
#undef V
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
  const size_t all = size_t(17000) * 2048;
  T* t[4];
  for (int i = 0; i < 4; i++) cudaMalloc(&t[i], all * 2), fill<<<1024, 256>>>(t[i], all, 77777u * i);
  void *lse, *w, *flush; float* slopes;
  cudaMalloc(&lse, 64 << 20), cudaMalloc(&w, size_t(1) << 30), cudaMalloc(&flush, 256 << 20), cudaMalloc(&slopes, 4096);
  float host[64]; for (int i = 0; i < 64; i++) host[i] = std::exp2(-8.f * (i % 16 + 1) / 16);
  cudaMemcpy(slopes, host, sizeof host, cudaMemcpyHostToDevice);
  cudaEvent_t a, b; cudaEventCreate(&a), cudaEventCreate(&b);
  const int rounds = argc > 1 ? atoi(argv[1]) : 5;
  const auto measure = [&](std::vector<One> vs, const char* kind, int D, int B, int H, int nq, int nk, bool causal) {
    Problem p;
    p.batch = B, p.heads = p.kv_heads = H, p.seq_q = nq, p.seq_k = nk, p.head_dim = D, p.dtype = attention::DType::bf16;
    p.mask = causal ? attention::Mask::causal : attention::Mask::none, p.scale = 1 / std::sqrt(float(D));
    const std::string k = kind;
    if (k == "window") p.window_left = 1024, p.window_right = 0;
    if (k == "softcap") p.softcap = 20;
    if (k == "alibi") p.alibi = true;
    ForwardArgs fa{}; fa.q = t[0], fa.k = t[1], fa.v = t[2], fa.o = t[3], fa.lse = (float*)lse, fa.workspace = w, fa.alibi = slopes;
    std::vector<std::vector<float>> each(vs.size()), slices(vs.size());
    float typical = 1;
    for (int round = 0; round <= rounds; round++) for (size_t k = 0; k < vs.size(); k++) {
      const size_t i = round % 2 ? k : vs.size() - 1 - k;
      const auto once = [&] { vs[i].f(p, fa, 0); };
      for (int r = 0; r < 3; r++) {
        cudaMemsetAsync(flush, r, 256 << 20);
        float ms;
        cudaEventRecord(a), once(), cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
        if (round) each[i].push_back(ms); typical = ms;
      }
      const int count = int(10 / typical) + 2;
      cudaEventRecord(a);
      for (int r = 0; r < count; r++) once();
      cudaEventRecord(b), cudaEventSynchronize(b);
      float ms; cudaEventElapsedTime(&ms, a, b);
      if (round) slices[i].push_back(ms / count);
    }
    std::vector<T> first(1 << 16), now(1 << 16);
    for (size_t i = 0; i < vs.size(); i++) {
      cudaMemset(t[3], 0, all * 2);
      vs[i].f(p, fa, 0);
      cudaMemcpy(now.data(), t[3] + size_t(B) * H * nq * D / 2, now.size() * 2, cudaMemcpyDeviceToHost);
      if (!i) first = now;
      double d = 0, f = 0;
      for (size_t j = 0; j < now.size(); j++) { const double x = __bfloat162float(first[j]), y = __bfloat162float(now[j]); d += (x - y) * (x - y), f += x * x; }
      std::sort(each[i].begin(), each[i].end()), std::sort(slices[i].begin(), slices[i].end());
      printf("{\"kind\": \"%s\", \"head_dim\": %d, \"batch\": %d, \"heads\": %d, \"seq_q\": %d, \"seq_k\": %d, \"causal\": %s, \"name\": \"%s\", \"us\": %.2f, \"us_in_slices\": %.2f, \"off\": %.4f}\n", kind, D, B, H, nq, nk, causal ? "true" : "false", vs[i].name.c_str(), 1e3 * each[i][each[i].size() / 2], 1e3 * slices[i][slices[i].size() / 2], std::sqrt(d / f));
    }
    fflush(stdout);
  };
#define N(n) One{#n, run_##n}
  for (int r = 0; r < 1; r++) for (bool causal : {true, false}) for (int n : {2048, 16384}) measure({N(k0), N(k4), N(k8), N(j2), N(k2), N(b0), N(b4), N(b8)}, "plain", 64, 16384 / n, 16, n, n, causal);
  if (cudaError_t e = cudaDeviceSynchronize()) printf("%s\n", cudaGetErrorString(e));
}
