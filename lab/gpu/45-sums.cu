// Chapter 13's loop with O added up in fp32 after every n tiles: error against fp64, and time of the loop alone.
//   sums flush    D = 64 and 128, n = 1 .. 64 and never (0)
//   sums wide     D = 256: never, and as forward.h has it
#include <cstdio>
#include <cstring>
#include <vector>
#include "forward.h"
#ifndef TURNS
#define TURNS true
#endif
namespace fp8 {
using T = __nv_bfloat16;
template <int n> struct Every : Direct {
  struct Range { static constexpr float start = 0, headroom = start; };
  static constexpr bool by_sums = true, turns = TURNS, q_held = true;
  static constexpr int flush = n;
  static constexpr attention::EightBits rounding = attention::lagging_max;
};
struct Offset : Every<1> {
  struct Range { static constexpr float start = 3, headroom = start; };
  static constexpr attention::EightBits rounding = attention::rotated_tile;
};
__device__ unsigned hash(unsigned h) { h ^= h >> 16, h *= 0x7feb352d, h ^= h >> 15, h *= 0x846ca68b, h ^= h >> 16; return h; }
__global__ void fill(T* x, size_t n, unsigned seed, float mean, float deviation) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
    const unsigned a = hash(unsigned(i) * 2 + hash(seed)), b = hash(unsigned(i) * 2 + 1 + hash(seed));
    x[i] = __float2bfloat16(mean + deviation * sqrtf(-2 * logf((a + 1.f) / 4294967808.f)) * cospif(b / 2147483648.f));
  }
}
// A block for a row of Q: the squares of O's error and of O, added to sums
__global__ void compare(const T* q, const T* k, const T* v, const T* o, double* scores, int rows, int keys, int D, double* sums) {
  __shared__ double shared[256], top, l;
  const int head = blockIdx.x / rows, me = threadIdx.x;
  const T *qr = q + size_t(blockIdx.x) * D, *kh = k + size_t(head) * keys * D, *vh = v + size_t(head) * keys * D;
  double* s = scores + size_t(blockIdx.x) * keys;
  double most = -1e300;
  for (int j = me; j < keys; j += 256) {
    double x = 0;
    for (int d = 0; d < D; d++) x += double(__bfloat162float(qr[d])) * double(__bfloat162float(kh[size_t(j) * D + d]));
    s[j] = x / sqrt(double(D)), most = max(most, s[j]);
  }
  shared[me] = most; __syncthreads();
  if (me == 0) { top = shared[0]; for (int i = 1; i < 256; i++) top = max(top, shared[i]); } __syncthreads();
  double sum = 0;
  for (int j = me; j < keys; j += 256) s[j] = exp(s[j] - top), sum += s[j];
  shared[me] = sum; __syncthreads();
  if (me == 0) { l = 0; for (int i = 0; i < 256; i++) l += shared[i]; } __syncthreads();
  for (int d = me; d < D; d += 256) {
    double x = 0;
    for (int j = 0; j < keys; j++) x += s[j] * double(__bfloat162float(vh[size_t(j) * D + d]));
    x /= l;
    const double e = x - double(__bfloat162float(o[size_t(blockIdx.x) * D + d]));
    atomicAdd(&sums[0], e * e), atomicAdd(&sums[1], x * x);
  }
}
struct Case { Problem p; ForwardArgs args{}; T* t[4]; };
void *cleared; double *scores, *squares; float* lse; void* workspace; T* tensors[4];
constexpr size_t most = size_t(16384) * 2048;
Case make(int D, int batch, int heads, int rows, int keys, bool causal, bool around_one) {
  Case c; Problem& p = c.p;
  p.batch = batch, p.heads = p.kv_heads = heads, p.seq_q = rows, p.seq_k = keys, p.head_dim = D, p.dtype = attention::DType::bf16;
  p.mask = causal ? attention::Mask::causal : attention::Mask::none, p.scale = 1 / std::sqrt(float(D));
  for (int i = 0; i < 3; i++)
    fill<<<1024, 256>>>(c.t[i] = tensors[i], size_t(batch) * heads * (i ? keys : rows) * D, 77 * i + D + keys, around_one && i == 2 ? 1 : 0, around_one && i == 2 ? .5f : 1);
  c.t[3] = tensors[3];
  c.args.q = c.t[0], c.args.k = c.t[1], c.args.v = c.t[2], c.args.o = c.t[3], c.args.lse = lse, c.args.workspace = workspace;
  return c;
}
template <class R, int D> double error(int keys, bool around_one) {
  constexpr int heads = 8, rows = 32;
  Case c = make(D, 1, heads, rows, keys, false, around_one);
  run<R, T, D>(c.p, c.args, 0);
  cudaMemset(squares, 0, 16);
  compare<<<heads * rows, 256>>>(c.t[0], c.t[1], c.t[2], c.t[3], scores, rows, keys, D, squares);
  double h[2]; cudaMemcpy(h, squares, 16, cudaMemcpyDeviceToHost);
  return std::sqrt(h[0] / h[1]);
}
template <class R, int D> void rates(int n, bool causal, double (&tflops)[2]) {
  Case c = make(D, 16384 / n, 2048 / D, n, n, causal, false);
  const auto timed = [&](int* taken, auto once) {
    cudaEvent_t a, b; cudaEventCreate(&a), cudaEventCreate(&b);
    const auto loop = [&] { cudaMemsetAsync(taken, 0, 4); once(); };
    for (int i = 0; i < 3; i++) loop();
    std::vector<float> each;
    for (int i = 0; i < 21; i++) {
      cudaMemsetAsync(cleared, i, 256 << 20); cudaMemsetAsync(taken, 0, 4);
      float ms; cudaEventRecord(a), once(), cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b); each.push_back(ms);
    }
    std::nth_element(each.begin(), each.begin() + 10, each.end());
    float together; cudaEventRecord(a); for (int i = 0; i < 60; i++) loop();
    cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&together, a, b);
    const double flop = 4. * c.p.batch * c.p.heads * n * double(n) * D * (causal ? .5 : 1) * 1e-9;
    tflops[0] = flop / each[10], tflops[1] = flop / (together / 60);
  };
  const auto in = attention::tensors_of<T>(c.args);
  if constexpr (R::rounding < attention::scale_of_tile) {
    const EightBits eight = in_workspace(c.p, workspace);
    quantize<T, D, R::v>(c.p, in, eight, 0);
    timed(eight.taken, [&] { attend<R, T, D>(c.p, c.args, eight, {eight.scales, eight.scales + 1, eight.scales + 2, 0, 0}, 0); });
  } else {
    const EightBitTiles eight = tiles_in_workspace(c.p, workspace, false);
    quantize_tiles<T, D, R::rounding == attention::rotated_tile>(c.p, in, eight, 0);
    timed(eight.taken, [&] { attend<R, T, D>(c.p, c.args, eight, tile_scales(eight), 0); });
  }
}
template <class R, int D> void row(const char* name, bool all_errors) {
  printf("  {\"head_dim\": %d, \"sums\": \"%s\", \"every\": %d", D, name, R::flush);
  for (const auto& [n, causal] : {std::pair(16384, false), {16384, true}, {4096, false}, {2048, true}}) {
    double tflops[2]; rates<R, D>(n, causal, tflops);
    printf(", \"tflops_%d_%s\": %.1f, \"back_to_back_%d_%s\": %.1f", n, causal ? "causal" : "full", tflops[0], n, causal ? "causal" : "full", tflops[1]);
  }
  for (int keys : {1024, 4096, 16384, 131072}) if (all_errors || keys < 100000)
    printf(", \"error_%d_mean1\": %.5f, \"error_%d_normal\": %.5f", keys, error<R, D>(keys, true), keys, error<R, D>(keys, false));
  if (cudaError_t e = cudaDeviceSynchronize()) printf(", \"failed\": \"%s\"", cudaGetErrorString(e));
  printf("},\n"); fflush(stdout);
}
template <int D> void flush() {
  row<Every<0>, D>("never", true), row<Every<1>, D>("every", true), row<Every<2>, D>("every", true), row<Every<4>, D>("every", true);
  row<Every<8>, D>("every", true), row<Every<16>, D>("every", true), row<Every<64>, D>("every", true);
}
}  // namespace fp8
int main(int, char** v) {
  using namespace fp8;
  cudaMalloc(&cleared, 256 << 20), cudaMalloc(&scores, size_t(256) * 131072 * 8), cudaMalloc(&squares, 16), cudaMalloc(&lse, 1 << 24), cudaMalloc(&workspace, size_t(1) << 30);
  for (int i = 0; i < 4; i++) cudaMalloc(&tensors[i], std::max(most, size_t(8) * 131072 * 256) * 2);
#ifdef FLUSH
  flush<64>(), flush<128>();
#else
  row<Every<0>, 256>("never", false), row<Every<1>, 256>(VARIANT, false), row<Offset, 256>(VARIANT ", offset", false);
#endif
}
