// Times the loops of chapter 13 alone, of inputs in eight bits. 45-loops D N batch causal: TFLOP/s, launch by launch
// (median of 21, with 256 MB written between) and back to back.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "13_fp8/forward.h"
namespace fp8 {
struct LazyRange { static constexpr float start = 0, headroom = 8.75f; };
struct Zero { static constexpr float start = 0, headroom = start; };
struct Three { static constexpr float start = 3, headroom = start; };
struct Lazy : Direct { using Range = LazyRange; static constexpr auto rounding = attention::lagging_max; };
struct Unscanned : Lazy { using Range = Zero; static constexpr bool by_sums = true; };
struct Turns : Unscanned { static constexpr bool turns = true; };
struct Held : Turns { static constexpr bool q_held = true; };
struct Joined : Held { static constexpr bool joined = true; };
struct TurnsJoined : Turns { static constexpr bool joined = true; };
struct Sums : Joined { static constexpr int flush = 1; static constexpr auto unsupported = attention::not_for_hopper; };
struct HeldSums : Held { static constexpr int flush = 1; static constexpr auto unsupported = attention::not_for_hopper; };
struct Blocks : Sums { static constexpr auto rounding = attention::scale_of_tile; };
struct Rotated : Sums { static constexpr auto rounding = attention::rotated_tile; };
struct Offset : Rotated { using Range = Three; };
struct HeldOffset : Offset { static constexpr bool joined = false; };

template <class R, int D>
void time(const char* name, const Problem& p, const ForwardArgs& args, void* flush) {
  using T = __nv_bfloat16;
  if constexpr (D == 256 && !to_256<R>) return;
  else {
  const auto tensors = attention::tensors_of<T>(args);
  const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
  const auto rows_of = [](const e4m3* x, int matrices, int rows, int box_rows) {
    constexpr int columns = bytes_of_row<D, e4m3>, pages = D / columns;
    return tensor_map(x, {columns, rows, pages, matrices}, {D, columns, int64_t(D) * rows}, {columns, box_rows, pages, 1});
  };
  const auto go = [&](const auto& eight, const Scales& scales) {
    const auto tiles = attention::all_tiles<Br<D>>(p);
    const unsigned blocks = std::min(multiprocessors(), tiles.heads * tiles.row_tiles);
    const TensorMap v_map = tensor_map(eight.v, {eight.keys, D, kv_heads}, {eight.keys, int64_t(eight.keys) * D}, {Bc, D, 1});
    const auto once = [&] {
      launch(forward<R, T, D>, {blocks, threads<D>, sizeof(Shared<R, T, D>), 0},
             rows_of(eight.q, heads, p.seq_q, Br<D>), rows_of(eight.k, kv_heads, p.seq_k, Bc), v_map,
             tile_map<D>(tensors.o, heads, p.seq_q, Br<D>), p, tiles, scales, args.lse);
    };
    cudaEvent_t a, b;
    cudaEventCreate(&a), cudaEventCreate(&b);
    for (int i = 0; i < 3; i++) once();
    std::vector<float> each;
    for (int i = 0; i < 21; i++) {
      cudaMemsetAsync(flush, i, 256 << 20);
      float ms;
      cudaEventRecord(a), once(), cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
      each.push_back(ms);
    }
    std::nth_element(each.begin(), each.begin() + 10, each.end());
    float together;
    cudaEventRecord(a);
    for (int i = 0; i < 20; i++) once();
    cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&together, a, b);
    const double flop = 4. * heads * p.seq_q * double(p.seq_k) * D * (p.mask == attention::Mask::causal ? .5 : 1);
    printf("{\"head_dim\": %d, \"seq\": %d, \"causal\": %d, \"rung\": \"%s\", \"tflops\": %.0f, \"back_to_back\": %.0f}\n", D, p.seq_q,
           p.mask == attention::Mask::causal, name, flop / each[10] * 1e-9, flop / (together / 20) * 1e-9);
    fflush(stdout);
  };
  if constexpr (R::rounding < attention::scale_of_tile) {
    const EightBits eight = in_workspace(p, args.workspace);
    quantize<T, D, V::transposed>(p, tensors, eight, 0);
    go(eight, {eight.scales, eight.scales + 1, eight.scales + 2, 0, 0});
  } else {
    const EightBitTiles eight = tiles_in_workspace(p, args.workspace);
    quantize_tiles<T, D, R::rounding == attention::rotated_tile>(p, tensors, eight, 0);
    go(eight, {eight.q_scales, eight.k_scales, eight.v_scales, eight.q_tiles, eight.k_tiles});
  }
  }
}
__global__ void fill(__nv_bfloat16* x, size_t n, unsigned seed) {
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
void all(int n, int batch, bool causal) {
  Problem p;
  p.batch = batch, p.heads = p.kv_heads = 2048 / D, p.seq_q = p.seq_k = n, p.head_dim = D;
  p.dtype = attention::DType::bf16, p.mask = causal ? attention::Mask::causal : attention::Mask::none;
  p.scale = 1 / std::sqrt(float(D));
  __nv_bfloat16* t[4];
  for (int i = 0; i < 4; i++) cudaMalloc(&t[i], p.q_size() * 2), fill<<<1024, 256>>>(t[i], p.q_size(), 77777u * i);
  ForwardArgs args{};
  args.q = t[0], args.k = t[1], args.v = t[2], args.o = t[3];
  cudaMalloc(&args.lse, p.q_size() / D * 4);
  cudaMalloc(&args.workspace, std::max(workspace_bytes(p), tiles_workspace_bytes(p)));
  void* flush;
  cudaMalloc(&flush, 256 << 20);
#define TIME(R) time<R, D>(#R, p, args, flush)
  TIME(Direct); TIME(Lazy); TIME(Unscanned); TIME(Turns); TIME(TurnsJoined); TIME(Held); TIME(Joined);
  TIME(HeldSums); TIME(Sums); TIME(Blocks); TIME(Rotated); TIME(HeldOffset); TIME(Offset);
  if (cudaError_t e = cudaDeviceSynchronize()) printf("%s\n", cudaGetErrorString(e));
}
}  // namespace fp8
int main(int, char** v) {
  const int D = atoi(v[1]), n = atoi(v[2]), batch = atoi(v[3]);
  (D == 64 ? fp8::all<64> : D == 128 ? fp8::all<128> : fp8::all<256>)(n, batch, atoi(v[4]));
}
