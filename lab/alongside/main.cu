#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <string>
#include <vector>
#include <algorithm>
#include "attention/problem.h"
#include "attention/rung.h"
#include "device/launch.h"
#include "13_fp8/quantize_tiles.h"
using attention::Problem; using attention::ForwardArgs;
using fp8::e4m3;
#define V(n) namespace fp8 { extern const attention::Rung n; }
VARIANTS
#undef V
namespace fp8 { void loop_alone(const Problem& p, const ForwardArgs& args, cudaStream_t stream); }
__global__ void fill(e4m3* x, size_t n, unsigned seed, float size) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
    float sum = 0;
    for (unsigned k = 0; k < 4; k++) {
      unsigned h = unsigned(i) * 4 + k + seed;
      h ^= h >> 16, h *= 0x7feb352d, h ^= h >> 15, h *= 0x846ca68b, h ^= h >> 16;
      sum += float(h) / 4294967296.f - .5f;
    }
    x[i] = e4m3(sum * 1.732f * size);
  }
}
int main(int argc, char** argv) {
  using T = __nv_bfloat16;
  const size_t all = size_t(16384) * 2048;
  e4m3* t[3]; T* o;
  for (int i = 0; i < 3; i++) cudaMalloc(&t[i], all), fill<<<1024, 256>>>(t[i], all, 77777u * i, 100);
  float *lse, *scales; void *w, *flush, *to;
  cudaMalloc(&o, all * 2), cudaMalloc(&lse, 64 << 20), cudaMalloc(&w, size_t(1) << 30), cudaMalloc(&flush, 256 << 20), cudaMalloc(&to, all), cudaMalloc(&scales, 12);
  const float s3[3] = {.01f, .01f, .01f}; cudaMemcpy(scales, s3, 12, cudaMemcpyHostToDevice);
  cudaEvent_t a, b; cudaEventCreate(&a), cudaEventCreate(&b);
  struct One { std::string name; void (*f)(const Problem&, const ForwardArgs&, cudaStream_t); };
  std::vector<One> vs;
#define V(n) vs.push_back({#n, fp8::n.from_e4m3.run});
VARIANTS
  vs.push_back({"loop_alone", fp8::loop_alone});
  const int rounds = argc > 1 ? atoi(argv[1]) : 5;
  const int dmin = argc > 2 ? atoi(argv[2]) : 0;
  for (int D : {256, 128, 64}) if (!dmin || D == dmin)
  for (int n : {512, 1024, 2048, 4096, 8192, 16384}) for (int kind = 0; kind < 4; kind++) {
    const bool causal = kind != 0, grouped = kind >= 2;
    if (grouped && n > 4096) continue;
    Problem p;
    p.batch = std::max(1, 16384 / n), p.heads = p.kv_heads = 2048 / D, p.seq_q = p.seq_k = n, p.head_dim = D;
    if (grouped) p.kv_heads = p.heads / (kind == 2 ? 4 : 2);
    p.dtype = attention::DType::bf16, p.mask = causal ? attention::Mask::causal : attention::Mask::none;
    p.scale = 1 / std::sqrt(float(D));
    ForwardArgs fa{}; fa.q = t[0], fa.k = t[1], fa.v = t[2], fa.o = o, fa.lse = lse, fa.workspace = w;
    fa.scales.q = scales, fa.scales.k = scales + 1, fa.scales.v = scales + 2;
    vs[0].f(p, fa, 0);
    std::vector<std::vector<float>> each(vs.size()), slices(vs.size());
    std::vector<float> typical(vs.size(), .1f);
    for (int round = 0; round <= rounds; round++) for (size_t k = 0; k < vs.size(); k++) {
      const size_t i = round % 2 ? k : vs.size() - 1 - k;
      const auto once = [&] { vs[i].f(p, fa, 0); };
      for (int r = 0; r < 4; r++) {
        cudaMemsetAsync(flush, r, 256 << 20);
        float ms;
        cudaEventRecord(a), once(), cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
        if (round) each[i].push_back(ms); typical[i] = ms;
      }
      const int count = int(6 / typical[i]) + 2;
      cudaEventRecord(a);
      for (int r = 0; r < count; r++) once();
      cudaEventRecord(b), cudaEventSynchronize(b);
      float ms; cudaEventElapsedTime(&ms, a, b);
      if (round) slices[i].push_back(ms / count);
    }
    std::vector<T> first(1 << 16), now(1 << 16);
    for (size_t i = 0; i < vs.size(); i++) {
      double d = 0, f = 0;
      cudaMemset(o, 0, all * 2);
      vs[i].f(p, fa, 0);
      cudaMemcpy(now.data(), o + all / 2, now.size() * 2, cudaMemcpyDeviceToHost);
      if (!i) first = now;
      for (size_t j = 0; j < now.size(); j++) { const double x = __bfloat162float(first[j]), y = __bfloat162float(now[j]); d += (x - y) * (x - y), f += x * x; }
      std::sort(each[i].begin(), each[i].end()), std::sort(slices[i].begin(), slices[i].end());
      printf("{\"head_dim\": %d, \"seq\": %d, \"causal\": %s, \"grouped\": %d, \"name\": \"%s\", \"us\": %.2f, \"us_in_slices\": %.2f, \"off\": %.5f, \"norm\": %.3f}\n", D, n, causal ? "true" : "false", p.heads / p.kv_heads, vs[i].name.c_str(), 1e3 * each[i][each[i].size() / 2], 1e3 * slices[i][slices[i].size() / 2], f ? std::sqrt(d / f) : 0., std::sqrt(f / now.size()));
    }
    fflush(stdout);
  }
  if (cudaError_t e = cudaDeviceSynchronize()) printf("%s\n", cudaGetErrorString(e));
}
