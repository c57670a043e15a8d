// Slices of loops in turn, of tensors in eight bits: each of ROUNDS rounds times every variant once for SLICE_MS (back to back, at
// whatever clock the GPU has then) and once alone after a pause (a burst). Medians, and the median of each round's ratio to the first variant.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <unistd.h>
#include <vector>
#include "13_fp8/forward.h"
namespace fp8 {
struct Three { static constexpr float start = 3, headroom = start; };
struct Zero { static constexpr float start = 0, headroom = start; };
struct Offset : Direct { using Range = Three; static constexpr bool by_sums = true, turns = true, q_held = true; static constexpr int flush = 1; static constexpr attention::EightBits rounding = attention::rotated_tile; };
template <int tiles, bool first> struct Follow : Offset { static constexpr int followed = tiles; static constexpr bool before = first; };
struct Held : Direct { using Range = Zero; static constexpr bool by_sums = true, turns = true, q_held = true; static constexpr attention::EightBits rounding = attention::lagging_max; };
struct Sums : Held { static constexpr int flush = 1; };
template <Part what> struct HeldBut : Held { static constexpr Part part = what; };
template <Part what> struct SumsBut : Sums { static constexpr Part part = what; };
using T = __nv_bfloat16;
struct Variant { const char* name; std::function<void()> once; std::vector<float> slices, bursts; };
static double median(std::vector<float> x) { std::sort(x.begin(), x.end()); return (x[(x.size() - 1) / 2] + x[x.size() / 2]) / 2; }
template <class R, int D>
void add(std::vector<Variant>& all, const char* name, const Problem& p, const ForwardArgs& args) {
  const auto tensors = attention::tensors_of<T>(args);
  if constexpr (R::rounding < attention::scale_of_tile) {
    const EightBits eight = in_workspace(p, args.workspace);
    quantize<T, D, V::transposed>(p, tensors, eight, 0);
    all.push_back({name, [=] { cudaMemsetAsync(eight.taken, 0, 4); attend<R, T, D>(p, args, eight, {eight.scales, eight.scales + 1, eight.scales + 2, 0, 0}, 0); }});
  } else {
    const EightBitTiles eight = tiles_in_workspace(p, args.workspace, false);
    quantize_tiles<T, D, R::rounding == attention::rotated_tile>(p, tensors, eight, 0);
    all.push_back({name, [=] { cudaMemsetAsync(eight.taken, 0, 4); attend<R, T, D>(p, args, eight, tile_scales(eight), 0); }});
  }
}
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
template <int D>
void time_all(int n, bool causal, T** t, void* lse, void* workspace, int rounds, float slice_ms) {
  Problem p;
  p.batch = 16384 / n, p.heads = p.kv_heads = 2048 / D, p.seq_q = p.seq_k = n, p.head_dim = D;
  p.dtype = attention::DType::bf16, p.mask = causal ? attention::Mask::causal : attention::Mask::none;
  p.scale = 1 / std::sqrt(float(D));
  ForwardArgs args{};
  args.q = t[0], args.k = t[1], args.v = t[2], args.o = t[3];
  args.lse = (float*)lse, args.workspace = workspace;
  std::vector<Variant> all;
#define ADD(name, ...) add<__VA_ARGS__, D>(all, name, p, args)
  VARIANTS
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  const auto timed = [&](const Variant& v, int times) {
    float ms;
    cudaEventRecord(a);
    for (int i = 0; i < times; i++) v.once();
    cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
    return ms / times;
  };
  std::vector<T> first(p.q_size()), o(p.q_size());
  std::vector<double> off;
  for (Variant& v : all) {
    v.once();
    cudaMemcpy(o.data(), args.o, o.size() * 2, cudaMemcpyDeviceToHost);
    if (&v == &all[0]) first = o;
    double num = 0, den = 0;
    for (size_t i = 0; i < o.size(); i += 61) { double x = float(o[i]), y = float(first[i]); num += (x - y) * (x - y), den += y * y; }
    off.push_back(std::sqrt(num / den));
  }
  timed(all[0], 3);
  const int times = std::max(1, int(slice_ms / timed(all[0], 3) + .5));
  for (int r = 0; r < rounds; r++)
    for (size_t i = 0; i < all.size(); i++) {
      Variant& v = all[r % 2 ? all.size() - 1 - i : i];
      v.slices.push_back(timed(v, times));
    }
  usleep(200000);
  for (int r = 0; r < 2 * rounds; r++)
    for (size_t i = 0; i < all.size(); i++) {
      Variant& v = all[(r % 2 ? all.size() - 1 - i : i)];
      usleep(1500);
      timed(v, 1);  // wakes the GPU up; its K and V are in the L2 cache as they are for the next
      v.bursts.push_back(timed(v, 1));
    }
  const double flop = 4. * p.batch * p.heads * double(n) * n * D * (causal ? .5 : 1);
  for (size_t i = 0; i < all.size(); i++) {
    const Variant& v = all[i];
    const auto ratio = [&](const std::vector<float>& base, const std::vector<float>& mine) {
      std::vector<float> r;
      for (size_t k = 0; k < base.size(); k++) r.push_back(base[k] / mine[k]);
      std::sort(r.begin(), r.end());
      static char text[4][64]; static int at = 0; at = (at + 1) % 4;
      snprintf(text[at], 64, "[%.4f, %.4f, %.4f]", r[r.size() / 10], median(r), r[r.size() - 1 - r.size() / 10]);
      return (const char*)text[at];
    };
    printf("{\"head_dim\": %d, \"seq\": %d, \"causal\": %d, \"loop\": \"%s\", \"slices_tflops\": %.1f, \"bursts_tflops\": %.1f, \"slices_ratio_10_50_90\": %s, \"bursts_ratio_10_50_90\": %s, \"off_first\": %.4f}\n",
           D, n, causal, v.name, flop / median(v.slices) * 1e-9, flop / median(v.bursts) * 1e-9, ratio(all[0].slices, v.slices), ratio(all[0].bursts, v.bursts), off[i]);
  }
  fflush(stdout);
  if (cudaError_t e = cudaDeviceSynchronize()) printf("%s\n", cudaGetErrorString(e));
}
}  // namespace fp8
int main(int argc, char** v) {
  using namespace fp8;
  const int rounds = argc > 1 ? atoi(v[1]) : 15;
  const float slice = argc > 2 ? atof(v[2]) : 12;
  T* t[4];
  for (int i = 0; i < 4; i++) cudaMalloc(&t[i], size_t(16384) * 2048 * 2), fill<<<1024, 256>>>(t[i], size_t(16384) * 2048, 77777u * i);
  void *lse, *w;
  cudaMalloc(&lse, 64 << 20), cudaMalloc(&w, 1 << 30);
  for (int n : {16384, 4096})
    for (bool causal : {false, true}) time_all<DIM>(n, causal, t, lse, w, rounds, slice);
}
