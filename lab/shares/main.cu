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
namespace hopper { extern int forced; }
#define V(n) void run_##n(const Problem& p, const ForwardArgs& args, cudaStream_t stream);
V(fitted) V(beside) V(even) V(whole)
#undef V
void own(int c, const Problem& p, const ForwardArgs& a, cudaStream_t s) { hopper::forced = c; (p.head_dim > 64 ? run_fitted : run_beside)(p, a, s); }
void run_c1(const Problem& p, const ForwardArgs& a, cudaStream_t s) { own(1, p, a, s); }
void run_c2(const Problem& p, const ForwardArgs& a, cudaStream_t s) { own(2, p, a, s); }
void run_c3(const Problem& p, const ForwardArgs& a, cudaStream_t s) { own(3, p, a, s); }
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
  const size_t all = size_t(131072) * 2048;
  T* t[4];
  for (int i = 0; i < 4; i++) cudaMalloc(&t[i], all * 2), fill<<<1024, 256>>>(t[i], all, 77777u * i);
  void *lse, *w, *flush;
  cudaMalloc(&lse, 64 << 20), cudaMalloc(&w, size_t(1) << 30), cudaMalloc(&flush, 256 << 20);
  cudaEvent_t a, b; cudaEventCreate(&a), cudaEventCreate(&b);
  const int rounds = argc > 1 ? atoi(argv[1]) : 5;
  const auto measure = [&](std::vector<One> vs, int D, int B, int H, int G, int nq, int nk, bool causal) {
    Problem p;
    p.batch = B, p.heads = H, p.kv_heads = H / G, p.seq_q = nq, p.seq_k = nk, p.head_dim = D, p.dtype = attention::DType::bf16;
    p.mask = causal ? attention::Mask::causal : attention::Mask::none, p.scale = 1 / std::sqrt(float(D));
    ForwardArgs fa{}; fa.q = t[0], fa.k = t[1], fa.v = t[2], fa.o = t[3], fa.lse = (float*)lse, fa.workspace = w;
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
      const int count = int(20 / typical) + 2;
      cudaEventRecord(a);
      for (int r = 0; r < count; r++) once();
      cudaEventRecord(b), cudaEventSynchronize(b);
      float ms; cudaEventElapsedTime(&ms, a, b);
      if (round) slices[i].push_back(ms / count);
    }
    const size_t rows = size_t(B) * H * nq * D;
    std::vector<T> first(rows), now(rows);
    for (size_t i = 0; i < vs.size(); i++) {
      cudaMemset(t[3], 0, all * 2);
      vs[i].f(p, fa, 0);
      cudaMemcpy(now.data(), t[3], rows * 2, cudaMemcpyDeviceToHost);
      if (!i) first = now;
      double d = 0, f = 0;
      for (size_t j = 0; j < rows; j += 17) { const double x = __bfloat162float(first[j]), y = __bfloat162float(now[j]); d += (x - y) * (x - y), f += x * x; }
      std::sort(each[i].begin(), each[i].end()), std::sort(slices[i].begin(), slices[i].end());
      printf("{\"head_dim\": %d, \"batch\": %d, \"heads\": %d, \"kv_heads\": %d, \"seq_q\": %d, \"seq_k\": %d, \"causal\": %s, \"name\": \"%s\", \"us\": %.2f, \"us_in_slices\": %.2f, \"off\": %.5f}\n", D, B, H, H / G, nq, nk, causal ? "true" : "false", vs[i].name.c_str(), 1e3 * each[i][each[i].size() / 2], 1e3 * slices[i][slices[i].size() / 2], std::sqrt(d / f));
    }
    fflush(stdout);
  };
#define N(n) One{#n, run_##n}
  const auto lengthy = [&](std::vector<One> vs, int D, int B, int H, int G, int nq, int nk, bool causal) {
    Problem p;
    p.batch = B, p.heads = H, p.kv_heads = H / G, p.seq_q = nq, p.seq_k = nk, p.head_dim = D, p.dtype = attention::DType::bf16;
    p.mask = causal ? attention::Mask::causal : attention::Mask::none, p.scale = 1 / std::sqrt(float(D));
    ForwardArgs fa{}; fa.q = t[0], fa.k = t[1], fa.v = t[2], fa.o = t[3], fa.lse = (float*)lse, fa.workspace = w;
    for (int round = 0; round < 2; round++) for (size_t k = 0; k < vs.size(); k++) {
      const size_t i = round % 2 ? k : vs.size() - 1 - k;
      float ms, sum = 0; std::vector<float> each;
      vs[i].f(p, fa, 0), cudaDeviceSynchronize();
      cudaEventRecord(a), vs[i].f(p, fa, 0), cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
      const int n = int(400 / ms) + 2;
      for (int r = 0; r < 20; r++) {
        cudaMemsetAsync(flush, r, 256 << 20);
        cudaEventRecord(a), vs[i].f(p, fa, 0), cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
        each.push_back(ms);
      }
      std::sort(each.begin(), each.end());
      for (int part = 0; part < 2; part++) {
        cudaEventRecord(a);
        for (int r = 0; r < n; r++) vs[i].f(p, fa, 0);
        cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
        sum = ms / n;
      }
      printf("long %d: D %d B %d H %d/%d %d x %d %d %s: launch by launch %.1f (10%% %.1f, last %.1f), back to back %.1f us\n", round, D, B, H, H / G, nq, nk, causal, vs[i].name.c_str(), 1e3 * each[10], 1e3 * each[2], 1e3 * each[18], 1e3 * sum);
    }
    fflush(stdout);
  };
  const std::vector<One> chunk = {N(c3), N(even), N(whole)}, train = {N(c3), N(c2), N(c1)};
  if (argc == 2) {
    lengthy(chunk, 128, 1, 32, 4, 4096, 131072, true);
    lengthy(chunk, 128, 1, 64, 8, 4096, 32768, true);
    lengthy(chunk, 128, 1, 64, 8, 512, 32768, true);
    lengthy(chunk, 128, 1, 32, 4, 1024, 32768, false);
    lengthy(chunk, 64, 1, 32, 4, 1024, 65536, true);
    return 0;
  }
  measure(chunk, 128, 1, 32, 4, 4096, 131072, true);
  measure(chunk, 128, 1, 32, 4, 1024, 32768, false);
  measure(chunk, 128, 1, 64, 8, 512, 32768, true);
  measure(chunk, 64, 1, 32, 4, 1024, 65536, true);
  measure(chunk, 128, 1, 64, 8, 4096, 32768, true);
  measure(chunk, 128, 1, 28, 7, 256, 8192, true);
  measure(chunk, 128, 1, 32, 4, 256, 32768, false);
  measure(chunk, 128, 1, 32, 4, 2048, 4096, true);
  measure(chunk, 128, 1, 28, 7, 2048, 16384, true);
  measure(chunk, 128, 2, 32, 4, 1024, 16384, false);
  measure(chunk, 64, 5, 40, 1, 1152, 13568, true);
  measure(chunk, 64, 1, 32, 4, 2048, 32768, false);
  if (argc > 2) for (int D : {64, 128}) {
    measure(train, D, 1, 32, 4, 512, 512, true);
    measure(train, D, 1, 64, 8, 512, 512, true);
    measure(train, D, 1, 28, 7, 1024, 1024, true);
    measure(train, D, 8, 32, 4, 1024, 1024, true);
    measure(train, D, 1, 32, 4, 512, 512, false);
    measure(train, D, 1, 64, 8, 512, 512, false);
    measure(train, D, 1, 64, 8, 1024, 1024, false);
    measure(train, D, 1, 40, 1, 1024, 1024, true);
    measure(train, D, 1, 32, 4, 2048, 2048, true);
    measure(train, D, 1, 64, 8, 2048, 2048, true);
    measure(train, D, 2, 16, 1, 1536, 1536, true);
    measure(train, D, 4, 16, 1, 1024, 1024, true);
    measure(train, D, 7, 40, 1, 1024, 4152, true);
    measure(train, D, 2, 64, 8, 700, 700, true);
    measure(train, D, 1, 16, 1, 2048, 2048, true);
    measure(train, D, 1, 32, 4, 1024, 2048, true);
  }
  if (cudaError_t e = cudaDeviceSynchronize()) printf("%s\n", cudaGetErrorString(e));
}
