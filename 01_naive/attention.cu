// Chapter 01: attention as its formula reads, one thread for each number it produces.
//
//   1. scores   S = scale * Q K^T, -inf where the mask hides a key     one thread per element of S
//   2. softmax  P = softmax(S), over S in place                        one thread per row of S
//   3. output   O = P V                                                one thread per element of O
//
// S and P are fp32 and live in global memory. In both products the 32 threads of a warp stand in 32 *rows* of the
// result. That is the slow way round, on purpose: their addresses lie a whole row apart. In the rung "swapped" they
// stand in 32 columns of one row instead, which changes one line: see my_element().
//
// watch() shows S, m, l and P to ./workbook walk. On a GPU it compiles to nothing.
//
// Expected limit: the load unit, which must touch 32 cache lines to serve one load of a warp.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace naive {

using attention::DType;
using attention::ForwardArgs;
using attention::Problem;

constexpr int tile = 32;  // a thread block makes 32 x 32 elements: warps are 32 wide, so a warp is one threadIdx.y
constexpr int threads = tile * tile;

enum class Walk { rows, columns };  // what the 32 threads of a warp step along

struct Element {
  int64_t row;  // over all batches and heads: (b * H + h) * Nq + i
  int column;
};

// The element that this thread makes. The grid covers a matrix of `columns` columns tile by tile.
__device__ Element my_element(int columns, Walk walk) {
  const int tiles_across = (columns + tile - 1) / tile;
  const int64_t tile_row = int64_t(blockIdx.x / tiles_across) * tile;
  const int tile_column = int(blockIdx.x % tiles_across) * tile;
  const int x = threadIdx.x, y = threadIdx.y;
  return walk == Walk::rows ? Element{tile_row + x, tile_column + y} : Element{tile_row + y, tile_column + x};
}

template <class T>
__global__ void __launch_bounds__(threads) scores(Problem p, Walk walk,
                                                  const T* q,  // [B, H, Nq, D]
                                                  const T* k,  // [B, Hkv, Nk, D]
                                                  float* s)    // [B, H, Nq, Nk]
{
  const auto [row, j] = my_element(p.seq_k, walk);
  if (row >= int64_t(p.batch) * p.heads * p.seq_q || j >= p.seq_k) return;
  const int head = int(row / p.seq_q), i = int(row % p.seq_q);

  watch_step("1. S = Q K^T");
  const T* q_row = q + row * p.head_dim;
  // exercise scores: the dot product of this row of Q and row j of the K that the query's head reads
  const T* k_row = k + (int64_t(p.kv_head(head)) * p.seq_k + j) * p.head_dim;
  float sum = 0;
  for (int d = 0; d < p.head_dim; ++d) sum += to_float(q_row[d]) * to_float(k_row[d]);
  // end scores | float sum = 0;
  s[row * p.seq_k + j] = j < p.visible_keys(i) ? p.scale * sum : -INFINITY;
  watch("S", {row, 0, 1, p.seq_k}, 0, j, s + row * p.seq_k + j);
}

__global__ void softmax(Problem p, float* s)  // [B, H, Nq, Nk], replaced by P
{
  const int64_t row = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  float* s_row = s + row * p.seq_k;

  watch_step("2. P = exp(S - m) / l");
  float m = -INFINITY;  // subtracted from every score, so that exp cannot overflow
  for (int j = 0; j < p.seq_k; ++j) m = fmaxf(m, s_row[j]);
  if (m == -INFINITY) m = 0;  // the row sees no key; keeps -inf - -inf = NaN out of exp
  float l = 0;
  for (int j = 0; j < p.seq_k; ++j) l += expf(s_row[j] - m);
  const Watched watched = {row, 0, 1, p.seq_k};
  watch("m", watched, 0, 0, m);
  watch("l", watched, 0, 0, l);
  for (int j = 0; j < p.seq_k; ++j) s_row[j] = l == 0 ? 0 : expf(s_row[j] - m) / l;
  for (int j = 0; j < p.seq_k; ++j) watch("P", watched, 0, j, s_row + j);
}

template <class T>
__global__ void __launch_bounds__(threads) output(Problem p, Walk walk,
                                                  const float* probabilities,  // [B, H, Nq, Nk]
                                                  const T* v,                  // [B, Hkv, Nk, D]
                                                  T* o)                        // [B, H, Nq, D]
{
  const auto [row, d] = my_element(p.head_dim, walk);
  if (row >= int64_t(p.batch) * p.heads * p.seq_q || d >= p.head_dim) return;
  const int head = int(row / p.seq_q);

  watch_step("3. O = P V");
  const float* p_row = probabilities + row * p.seq_k;
  const T* v_column = v + int64_t(p.kv_head(head)) * p.seq_k * p.head_dim + d;
  float sum = 0;
  for (int j = 0; j < p.seq_k; ++j) sum += p_row[j] * to_float(v_column[int64_t(j) * p.head_dim]);
  o[row * p.head_dim + d] = from_float<T>(sum);
}

template <class T, Walk walk>
void forward_as(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  float* s = static_cast<float*>(args.workspace);
  const auto q = static_cast<const T*>(args.q), k = static_cast<const T*>(args.k), v = static_cast<const T*>(args.v);
  const auto o = static_cast<T*>(args.o);

  const int64_t rows = int64_t(p.batch) * p.heads * p.seq_q;
  const dim3 block(tile, tile);
  const dim3 score_tiles(unsigned(ceil_div(rows, tile) * ceil_div(p.seq_k, tile)));
  const dim3 output_tiles(unsigned(ceil_div(rows, tile) * ceil_div(p.head_dim, tile)));
  constexpr int softmax_rows = 128;  // rows, and so threads, of a softmax block: four warps, one per scheduler

  launch(scores<T>, {score_tiles, block, 0, stream}, p, walk, q, k, s);
  launch(softmax, {unsigned(ceil_div(rows, softmax_rows)), softmax_rows, 0, stream}, p, s);
  launch(output<T>, {output_tiles, block, 0, stream}, p, walk, s, v, o);
}

template <Walk walk>
void forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  const auto run = p.dtype == DType::fp16 ? forward_as<__half, walk> : forward_as<__nv_bfloat16, walk>;
  run(p, args, stream);
}

// S: four bytes for every pair of a query and a key.
size_t workspace_bytes(const Problem& p) { return p.lse_size() * p.seq_k * sizeof(float); }

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "01_naive",
    .idea = "S = QK^T, softmax and O = PV as three kernels, with one thread per element and S in global memory",
    .rungs = {{.name = "swapped",
               .idea = "a warp walks along a row of the result: its stores, and its loads of V, become consecutive",
               .forward = {attention::head_dim_not_8_to_256, workspace_bytes, forward<Walk::columns>}},
              {.name = "naive",
               .idea = "a warp walks down a column of the result, uncoalesced on purpose: the ladder's first step",
               .forward = {attention::head_dim_not_8_to_256, workspace_bytes, forward<Walk::rows>}}}};

}  // namespace naive
