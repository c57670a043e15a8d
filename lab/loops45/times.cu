// Times chapter 13's parts of random bf16 inputs. times loops D N causal | round | take | timeline D
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include "forward.h"
namespace fp8 {
struct Zero { static constexpr float start = 0, headroom = start; };
struct Three { static constexpr float start = 3, headroom = start; };
struct Held : Direct { using Range = Zero; static constexpr bool by_sums = true, turns = true, q_held = true; static constexpr attention::EightBits rounding = attention::lagging_max; };
struct Offset : Held { using Range = Three; static constexpr int flush = 1; static constexpr attention::EightBits rounding = attention::rotated_tile; };
struct One : Offset { static constexpr int flush = 0; };
using T = __nv_bfloat16;
void* flush;
template <class F> void time(const char* name, const char* what, double work, const char* unit, F once) {
  cudaEvent_t a, b; cudaEventCreate(&a), cudaEventCreate(&b);
  for (int i = 0; i < 3; i++) once();
  std::vector<float> each;
  for (int i = 0; i < 21; i++) {
    cudaMemsetAsync(flush, i, 256 << 20);
    float ms; cudaEventRecord(a), once(), cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b); each.push_back(ms);
  }
  std::nth_element(each.begin(), each.begin() + 10, each.end());
  float together; cudaEventRecord(a); for (int i = 0; i < 20; i++) once();
  cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&together, a, b);
  printf("{\"what\": \"%s\", \"case\": \"%s\", \"us\": %.1f, \"%s\": %.0f, \"back_to_back\": %.0f}\n", name, what, each[10] * 1e3, unit, work / each[10], work / (together / 20));
  fflush(stdout);
}
__global__ void fill(T* x, size_t n, unsigned seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
    float sum = 0;
    for (unsigned k = 0; k < 4; k++) { unsigned h = unsigned(i) * 4 + k + seed; h ^= h >> 16, h *= 0x7feb352d, h ^= h >> 15, h *= 0x846ca68b, h ^= h >> 16; sum += float(h) / 4294967296.f - .5f; }
    x[i] = __float2bfloat16(sum * 1.732f);
  }
}
struct Case { Problem p; ForwardArgs args{}; };
Case make(int D, int n, bool causal) {
  Case c; Problem& p = c.p;
  p.batch = 16384 / n, p.heads = p.kv_heads = 2048 / D, p.seq_q = p.seq_k = n, p.head_dim = D, p.dtype = attention::DType::bf16;
  p.mask = causal ? attention::Mask::causal : attention::Mask::none, p.scale = 1 / std::sqrt(float(D));
  static T* t[4];
  for (int i = 0; i < 4; i++) { if (!t[i]) cudaMalloc(&t[i], p.q_size() * 2); fill<<<1024, 256>>>(t[i], p.q_size(), 77777u * i); }
  c.args.q = t[0], c.args.k = t[1], c.args.v = t[2], c.args.o = t[3];
  static float* lse; static void* ws;
  if (!lse) cudaMalloc(&lse, 16384 * 32 * 4 * 2), cudaMalloc(&ws, size_t(256) << 20);
  c.args.lse = lse, c.args.workspace = ws;
  return c;
}
template <class R, int D> void loop(const char* name, Case& c) {
  auto eight = tiles_in_workspace(c.p, c.args.workspace, false);
  quantize_tiles<T, D, R::rounding == attention::rotated_tile>(c.p, attention::tensors_of<T>(c.args), eight, 0);
  char what[99]; sprintf(what, "D %d N %d %s", D, c.p.seq_q, c.p.mask == attention::Mask::causal ? "causal" : "full");
  time(name, what, 4. * c.p.batch * c.p.heads * c.p.seq_q * double(c.p.seq_k) * D * (c.p.mask == attention::Mask::causal ? .5 : 1) * 1e-9, "tflops",
       [&] { cudaMemsetAsync(eight.taken, 0, 4); attend<R, T, D>(c.p, c.args, eight, tile_scales(eight), 0); });
}
template <int D> void loops(int n, bool causal) {
  Case c = make(D, n, causal);
  using R = Offset;

  loop<std::conditional_t<D == 256, One, R>, D>(VARIANT, c);
}
template <int D> void round_and_take() {
  Case c = make(D, 4096, false);
  auto eight = tiles_in_workspace(c.p, c.args.workspace, false);
  const auto tensors = attention::tensors_of<T>(c.args);
  char what[99]; sprintf(what, "D %d", D);
  const double bytes = c.p.q_size() * 9. * 1e-6;
  time("round_tiles", what, bytes, "GB_per_s", [&] { quantize_tiles<T, D, false>(c.p, tensors, eight, 0); });
  time("round_tiles, rotated", what, bytes, "GB_per_s", [&] { quantize_tiles<T, D, true>(c.p, tensors, eight, 0); });
  attention::ScalesOfE4m3 s{}; static float* one; if (!one) { cudaMalloc(&one, 1 << 20); std::vector<float> h(1 << 18, 1.f); cudaMemcpy(one, h.data(), 1 << 20, cudaMemcpyHostToDevice); }
  s.q = s.k = s.v = one; s.of_tiles = false;
  const unsigned blocks = unsigned(c.p.batch * c.p.kv_heads) * eight.k_tiles + unsigned(c.p.batch * c.p.heads);
  time("take_tiles", what, c.p.q_size() * 2. * 1e-6, "GB_per_s", [&] { launch(take_tiles<D>, {blocks, take_threads<D>, 0, 0}, reinterpret_cast<const e4m3*>(tensors.v), s, c.p, eight); });
}
#ifdef TIMELINE
template <int D> void timeline() {
  Case c = make(D, 16384, false);

  loop<std::conditional_t<D == 256, One, Offset>, D>("timeline", c);
  unsigned h[3][64][8]; cudaMemcpyFromSymbol(h, stamps, sizeof h);
  for (int w = 0; w < 3; w++) { printf("D %d consumer %d: mean cycles from the tile before; turn waited for; S there; x made; PV there; V waited for; P made\n", D, w);
    double sum[8] = {}; for (int j = 1; j < 60; j++) { sum[0] += h[w][j][0] - h[w][j - 1][6]; for (int i = 1; i < 7; i++) sum[i] += h[w][j][i] - h[w][j][i - 1]; sum[7] += h[w][j][0] - h[w][j - 1][0]; }
    for (int i = 0; i < 8; i++) printf("%.0f ", sum[i] / 59); printf("\n");
    for (int j = 1; j < 6; j++) { for (int i = 0; i < 7; i++) printf("%u ", h[w][j][i] - h[0][0][0]); printf("\n"); } }
}
#endif
// How many cycles of a multiprocessor a warp instruction takes, with `warps` warps: exponentials, conversions, both
template <int ops> __global__ void rates(float* out, unsigned* cycles, float seed) {
  float x[16]; uint32_t y[8] = {};
  for (int i = 0; i < 16; i++) x[i] = seed * (i + threadIdx.x);
  __syncthreads(); unsigned a, b; asm volatile("mov.u32 %0, %%clock;" : "=r"(a) :: "memory");
#pragma unroll 1
  for (int k = 0; k < 64; k++) {
#pragma unroll
    for (int i = 0; i < 16; i++) if (ops & 1) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x[i]));
#pragma unroll
    for (int i = 0; i < 8; i++) if (ops & 2) { uint16_t z; asm volatile("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(z) : "f"(x[2 * i]), "f"(x[2 * i + 1])); y[i] ^= z; }
#pragma unroll
    for (int i = 0; i < 16; i++) if (ops & 4) asm volatile("{.reg .b16 l,h; mov.b32 {l,h}, %0; ex2.approx.f16 l, l; ex2.approx.f16 h, h; mov.b32 %0, {l,h};}" : "+f"(x[i]));
#pragma unroll
    for (int i = 0; i < 16; i++) if (ops & 8) asm volatile("add.f32 %0, %0, %0;" : "+f"(x[i]));
  }
  asm volatile("mov.u32 %0, %%clock;" : "=r"(b) :: "memory");
  float s = 0; for (int i = 0; i < 16; i++) s += x[i]; for (int i = 0; i < 8; i++) s += y[i];
  out[threadIdx.x] = s; if (threadIdx.x == 0) *cycles = b - a;
}
template <int ops> void rate(const char* name) {
  float* o; unsigned* c; cudaMalloc(&o, 4096); cudaMalloc(&c, 4);
  for (int warps : {1, 2, 3}) { unsigned h = 0; for (int i = 0; i < 2; i++) rates<ops><<<1, warps * 128>>>(o, c, 1e-3f); cudaMemcpy(&h, c, 4, cudaMemcpyDeviceToHost);
    printf("{\"rate\": \"%s\", \"warps_a_scheduler\": %d, \"cycles_a_round_and_warp\": %.2f}\n", name, warps, h / 64. / warps); }
}
}  // namespace fp8
int main(int n, char** v) {
  using namespace fp8;
  cudaMalloc(&fp8::flush, 256 << 20);
  if (!strcmp(v[1], "loops")) { const int D = atoi(v[2]); (D == 64 ? loops<64> : D == 128 ? loops<128> : loops<256>)(atoi(v[3]), atoi(v[4])); }
  if (!strcmp(v[1], "round")) round_and_take<64>(), round_and_take<128>(), round_and_take<256>();
  if (!strcmp(v[1], "rates")) { rate<1>("16 ex2.f32"); rate<2>("8 cvt.e4m3x2 (and 8 lop)"); rate<3>("16 ex2.f32, 8 cvt"); rate<4>("32 ex2.f16"); rate<9>("16 ex2.f32, 16 add"); rate<11>("16 ex2.f32, 8 cvt, 16 add"); }
#ifdef TIMELINE
  if (!strcmp(v[1], "timeline")) timeline<64>(), timeline<128>(), timeline<256>();
#endif
  if (cudaError_t e = cudaDeviceSynchronize()) printf("%s\n", cudaGetErrorString(e));
}
