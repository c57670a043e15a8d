// Chapter 03, rung 1, tiles: both products in tiles through shared memory, one result a thread.
//
//   1. scores   S = scale * Q K^T, -inf where the mask hides a key     a 32 x 32 tile of S per thread block
//   2. softmax  P = softmax(S), over S in place                        a row per warp, as in chapter 02
//   3. output   O = P V                                                a 32 x 32 tile of O per thread block
//
// A product walks along its inner dimension 32 at a time: the block copies a chunk of both factors to shared memory,
// then every thread adds that chunk's share to the one element that it owns. An element in shared memory is read from
// global memory once for 32 results.
//
//   1024 threads, tx = 0..31 across, ty = 0..31 down: a warp makes 32 neighbours of one row
//
// What changed since chapter 02: in both products a thread block owns a tile, not eight rows, and threads meet at
// barriers; what a warp loads, converts to fp32 and checks against the bounds serves all warps of the block. A thread
// makes its result alone, so the shuffles are gone. K is transposed on its way to shared memory: 32 lanes with 32
// different keys then read neighbours, as they do in V, which lies that way already.
//
// Expected limit: shared memory. Four multiply-adds read one 16-byte piece of the left factor and four numbers of the
// right one.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "device/fp32_tile.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace tiling {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using fp32_tile::load_float4;

constexpr int tile = 32;              // rows and columns of the result that a thread block owns
constexpr int depth = 32;             // of the inner dimension in shared memory at a time: 8 KB for two factors
constexpr int threads = tile * tile;  // a result each

struct Tile {
  int head;         // over all batches: b * H + h
  int row, column;  // where it starts
};

// The tile of this thread block, when the grid covers [B * H, n_rows, n_columns].
__device__ Tile my_tile(int n_rows, int n_columns) {
  const int down = (n_rows + tile - 1) / tile, across = (n_columns + tile - 1) / tile;
  return {int(blockIdx.x / across / down), int(blockIdx.x / across % down) * tile, int(blockIdx.x % across) * tile};
}

// Copies n_rows x n_columns of a row-major matrix to shared memory as fp32, with zeros for what lies outside it.
template <int n_rows, int n_columns, bool transposed = false, class T>
__device__ void stage(float* to,      // [n_rows][n_columns], or [n_columns][n_rows] if transposed
                      const T* from,  // [rows_left, stride], of which columns_left columns exist
                      int64_t stride, int rows_left, int columns_left) {
  // Eight neighbouring lanes take the same 16 bytes of eight rows: whole sectors loaded.
  if (const int pack = threadIdx.x; pack < n_rows * n_columns / 8) {
    const int row = pack / n_columns * 8 + pack % 8, column = pack % n_columns / 8 * 8;
    Pack8<T> x = {};
    if (row < rows_left && column < columns_left) x = load_pack8(from + row * stride + column);
    if constexpr (transposed) {
      for (int e = 0; e < 8; ++e) to[(column + e) * n_rows + row] = to_float(x.x[e]);
      return;
    }
    float* out = to + row * n_columns + column;
    *reinterpret_cast<float4*>(out) =
        make_float4(to_float(x.x[0]), to_float(x.x[1]), to_float(x.x[2]), to_float(x.x[3]));
    *reinterpret_cast<float4*>(out + 4) =
        make_float4(to_float(x.x[4]), to_float(x.x[5]), to_float(x.x[6]), to_float(x.x[7]));
  }
}

template <class T>
__global__ void __launch_bounds__(threads) scores(Problem p,
                                                  const T* q,  // [B, H, Nq, D]
                                                  const T* k,  // [B, Hkv, Nk, D]
                                                  float* s)    // [B, H, Nq, Nk]
{
  alignas(16) __shared__ float q_smem[tile][depth];
  alignas(16) __shared__ float k_smem[depth][tile];
  const auto [head, i0, j0] = my_tile(p.seq_q, p.seq_k);
  const int tx = threadIdx.x % tile, ty = threadIdx.x / tile;
  const T* q_tile = q + (int64_t(head) * p.seq_q + i0) * p.head_dim;
  const T* k_tile = k + (int64_t(p.kv_head(head)) * p.seq_k + j0) * p.head_dim;

  watch_step("1. S = Q K^T");
  float sum = 0;
  for (int d0 = 0; d0 < p.head_dim; d0 += depth) {
    // exercise chunks: bring the chunks of Q and of K, transposed, that begin at d0 to shared memory, for all threads
    __syncthreads();  // everyone is done with the chunk that is overwritten now
    stage<tile, depth>(q_smem[0], q_tile + d0, p.head_dim, p.seq_q - i0, p.head_dim - d0);
    stage<tile, depth, true>(k_smem[0], k_tile + d0, p.head_dim, p.seq_k - j0, p.head_dim - d0);
    __syncthreads();  // the chunk is complete
    // end chunks |
    for (int d = 0; d < depth; d += 4) {
      const float4 q_reg = load_float4(&q_smem[ty][d]);
      sum += q_reg.x * k_smem[d][tx] + q_reg.y * k_smem[d + 1][tx] + q_reg.z * k_smem[d + 2][tx] +
             q_reg.w * k_smem[d + 3][tx];
    }
  }

  const int i = i0 + ty, j = j0 + tx;
  if (i < p.seq_q && j < p.seq_k)
    s[(int64_t(head) * p.seq_q + i) * p.seq_k + j] = j < p.visible_keys(i) ? p.scale * sum : -INFINITY;
  const int64_t row = int64_t(head) * p.seq_q + i0;
  watch("S", {row, 0, p.seq_q - i0, p.seq_k}, ty, j, s + (row + ty) * p.seq_k + j);
}

constexpr int softmax_warps = 8;  // per thread block, a row each

__global__ void softmax(Problem p, float* s)  // [B, H, Nq, Nk], replaced by P
{
  const int64_t row = int64_t(blockIdx.x) * softmax_warps + threadIdx.x / 32;
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  float* s_row = s + row * p.seq_k;
  const int lane = threadIdx.x % 32;

  watch_step("2. P = exp(S - m) / l");
  float m = -INFINITY;  // subtracted from every score, so that exp cannot overflow
  for (int j = lane; j < p.seq_k; j += 32) m = fmaxf(m, s_row[j]);
  m = warp_max(m);
  if (m == -INFINITY) m = 0;  // the row sees no key; keeps -inf - -inf = NaN out of exp
  float l = 0;
  for (int j = lane; j < p.seq_k; j += 32) l += expf(s_row[j] - m);
  l = warp_sum(l);
  const Watched watched = {row, 0, 1, p.seq_k};
  watch("m", watched, 0, 0, m);
  watch("l", watched, 0, 0, l);
  for (int j = lane; j < p.seq_k; j += 32) s_row[j] = l == 0 ? 0 : expf(s_row[j] - m) / l;
  for (int j = lane; j < p.seq_k; j += 32) watch("P", watched, 0, j, s_row + j);
}

template <class T>
__global__ void __launch_bounds__(threads) output(Problem p,
                                                  const float* probabilities,  // [B, H, Nq, Nk]
                                                  const T* v,                  // [B, Hkv, Nk, D]
                                                  T* o)                        // [B, H, Nq, D]
{
  alignas(16) __shared__ float p_smem[tile][depth];
  alignas(16) __shared__ float v_smem[depth][tile];
  const auto [head, i0, d0] = my_tile(p.seq_q, p.head_dim);
  const int tx = threadIdx.x % tile, ty = threadIdx.x / tile;
  const float* p_tile = probabilities + (int64_t(head) * p.seq_q + i0) * p.seq_k;
  const T* v_tile = v + int64_t(p.kv_head(head)) * p.seq_k * p.head_dim + d0;

  watch_step("3. O = P V");
  float sum = 0;
  for (int j0 = 0; j0 < p.seq_k; j0 += depth) {
    __syncthreads();  // everyone is done with the chunk that is overwritten now
    // exercise tail: this number of the chunk of P that begins at key j0; 0 if its row or its key does not exist
    p_smem[ty][tx] = i0 + ty < p.seq_q && j0 + tx < p.seq_k ? p_tile[int64_t(ty) * p.seq_k + j0 + tx] : 0;
    // end tail | p_smem[ty][tx] = 0;
    stage<depth, tile>(v_smem[0], v_tile + int64_t(j0) * p.head_dim, p.head_dim, p.seq_k - j0, p.head_dim - d0);
    __syncthreads();  // the chunk is complete
    for (int j = 0; j < depth; j += 4) {
      const float4 p_reg = load_float4(&p_smem[ty][j]);
      sum += p_reg.x * v_smem[j][tx] + p_reg.y * v_smem[j + 1][tx] + p_reg.z * v_smem[j + 2][tx] +
             p_reg.w * v_smem[j + 3][tx];
    }
  }

  const int i = i0 + ty, d = d0 + tx;
  if (i < p.seq_q && d < p.head_dim) o[(int64_t(head) * p.seq_q + i) * p.head_dim + d] = from_float<T>(sum);
}

void forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype(p, [&]<class T>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    float* s = static_cast<float*>(args.workspace);
    const int64_t heads = int64_t(p.batch) * p.heads;
    const dim3 score_tiles(unsigned(heads * ceil_div(p.seq_q, tile) * ceil_div(p.seq_k, tile)));
    const dim3 softmax_rows(unsigned(ceil_div(heads * p.seq_q, softmax_warps)));
    const dim3 output_tiles(unsigned(heads * ceil_div(p.seq_q, tile) * ceil_div(p.head_dim, tile)));

    launch(scores<T>, {score_tiles, dim3(threads), 0, stream}, p, q, k, s);
    launch(softmax, {softmax_rows, dim3(softmax_warps * 32), 0, stream}, p, s);
    launch(output<T>, {output_tiles, dim3(threads), 0, stream}, p, s, v, o);
  });
}

// S: four bytes for every pair of a query and a key.
size_t workspace_bytes(const Problem& p) { return p.lse_size() * p.seq_k * sizeof(float); }

}  // namespace

extern const attention::Rung tiles;
constinit const attention::Rung tiles = {
    .name = "tiles",
    .idea = "a tile of results a thread block, one a thread: 32 x 32 chunks of Q, K, P and V in shared memory",
    .forward = {attention::head_dim_not_8_to_256, workspace_bytes, forward}};

}  // namespace tiling
