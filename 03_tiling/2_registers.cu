// Chapter 03, rung 2, registers: many results a thread, so that a number is read from shared memory for several of
// them.
//
//   1. scores   S = scale * Q K^T, -inf where the mask hides a key     a 64 x 64 tile of S per thread block
//   2. softmax  P = softmax(S), over S in place                        a row per warp, as in chapter 02
//   3. output   O = P V                                                a 64 x 64 tile of O per thread block
//
// A product walks along its inner dimension 32 at a time: the block copies a chunk of both factors to shared memory,
// then every thread adds that chunk's share to 8 x 4 elements that it keeps in registers. An element in shared
// memory is read from global memory once for 64 results; a value in a register is used 4 or 8 times.
//
//   128 threads, tx = 0..15 across, ty = 0..7 down.   scores: rows ty, ty + 8, ..   keys    tx, tx + 16, ..
//                                                     output: rows ty, ty + 8, ..   columns 4 tx .. 4 tx + 3
//
// What changed since 1_tiles: 128 threads make a tile of 64 x 64 results, 8 x 4 each, where 1024 made one of 32 x 32,
// one each. A thread reads four numbers at a time from both factors, and in output makes four neighbouring columns,
// which it stores together. For the reads of four, K lies in shared memory as in global memory, row by row, and not
// transposed.
//
// Expected limit: bank conflicts. Sixteen lanes read the same place of sixteen rows of K, and the copy writes to the
// same place of eight rows; the rows are 32 or 64 floats long, and shared memory has 32 banks.
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
using fp32_tile::store_rounded;

constexpr int tile = 64;           // rows and columns of the result that a thread block owns
constexpr int depth = 32;          // of the inner dimension in shared memory at a time: 16 KB for two factors
constexpr int threads = 128;       // 16 x 8
constexpr int rows = 8, cols = 4;  // of the result that a thread owns: 12 reads of 16 bytes feed 128 multiply-adds

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
template <int n_rows, int n_columns, class T>
__device__ void stage(float* to,      // [n_rows][n_columns]
                      const T* from,  // [rows_left, stride], of which columns_left columns exist
                      int64_t stride, int rows_left, int columns_left) {
  // Eight neighbouring lanes take the same 16 bytes of eight rows: whole sectors loaded.
  for (int pack = threadIdx.x; pack < n_rows * n_columns / 8; pack += threads) {
    const int row = pack / n_columns * 8 + pack % 8, column = pack % n_columns / 8 * 8;
    Pack8<T> x = {};
    if (row < rows_left && column < columns_left) x = load_pack8(from + row * stride + column);
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
  alignas(16) __shared__ float k_smem[tile][depth];
  const auto [head, i0, j0] = my_tile(p.seq_q, p.seq_k);
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const T* q_tile = q + (int64_t(head) * p.seq_q + i0) * p.head_dim;
  const T* k_tile = k + (int64_t(p.kv_head(head)) * p.seq_k + j0) * p.head_dim;

  watch_step("1. S = Q K^T");
  float sum[rows][cols] = {};
  for (int d0 = 0; d0 < p.head_dim; d0 += depth) {
    __syncthreads();  // everyone is done with the chunk that is overwritten now
    stage<tile, depth>(q_smem[0], q_tile + d0, p.head_dim, p.seq_q - i0, p.head_dim - d0);
    stage<tile, depth>(k_smem[0], k_tile + d0, p.head_dim, p.seq_k - j0, p.head_dim - d0);
    __syncthreads();  // the chunk is complete
    for (int d = 0; d < depth; d += 4) {
      float4 k_reg[cols];
      for (int n = 0; n < cols; ++n) k_reg[n] = load_float4(&k_smem[tx + 16 * n][d]);
      for (int m = 0; m < rows; ++m) {
        const float4 q_reg = load_float4(&q_smem[ty + 8 * m][d]);
        for (int n = 0; n < cols; ++n)
          sum[m][n] += q_reg.x * k_reg[n].x + q_reg.y * k_reg[n].y + q_reg.z * k_reg[n].z + q_reg.w * k_reg[n].w;
      }
    }
  }

  for (int m = 0; m < rows; ++m) {
    const int i = i0 + ty + 8 * m;
    if (i >= p.seq_q) continue;
    float* s_row = s + (int64_t(head) * p.seq_q + i) * p.seq_k;
    for (int n = 0; n < cols; ++n) {
      const int j = j0 + tx + 16 * n;
      if (j < p.seq_k) s_row[j] = j < p.visible_keys(i) ? p.scale * sum[m][n] : -INFINITY;
      watch("S", {int64_t(head) * p.seq_q + i, 0, 1, p.seq_k}, 0, j, s_row + j);
    }
  }
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
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const float* p_tile = probabilities + (int64_t(head) * p.seq_q + i0) * p.seq_k;
  const T* v_tile = v + int64_t(p.kv_head(head)) * p.seq_k * p.head_dim + d0;

  watch_step("3. O = P V");
  float4 sum[rows] = {};
  for (int j0 = 0; j0 < p.seq_k; j0 += depth) {
    __syncthreads();  // everyone is done with the chunk that is overwritten now
    for (int x = threadIdx.x; x < tile * depth; x += threads) {  // a row of S need not start at a multiple of 16 bytes
      const int i = x / depth, j = x % depth;
      p_smem[i][j] = i0 + i < p.seq_q && j0 + j < p.seq_k ? p_tile[int64_t(i) * p.seq_k + j0 + j] : 0;
    }
    stage<depth, tile>(v_smem[0], v_tile + int64_t(j0) * p.head_dim, p.head_dim, p.seq_k - j0, p.head_dim - d0);
    __syncthreads();  // the chunk is complete
    for (int j = 0; j < depth; j += 4) {
      float4 v_reg[4];
      for (int n = 0; n < 4; ++n) v_reg[n] = load_float4(&v_smem[j + n][4 * tx]);
      for (int m = 0; m < rows; ++m) {
        const float4 p_reg = load_float4(&p_smem[ty + 8 * m][j]);
        sum[m].x += p_reg.x * v_reg[0].x + p_reg.y * v_reg[1].x + p_reg.z * v_reg[2].x + p_reg.w * v_reg[3].x;
        sum[m].y += p_reg.x * v_reg[0].y + p_reg.y * v_reg[1].y + p_reg.z * v_reg[2].y + p_reg.w * v_reg[3].y;
        sum[m].z += p_reg.x * v_reg[0].z + p_reg.y * v_reg[1].z + p_reg.z * v_reg[2].z + p_reg.w * v_reg[3].z;
        sum[m].w += p_reg.x * v_reg[0].w + p_reg.y * v_reg[1].w + p_reg.z * v_reg[2].w + p_reg.w * v_reg[3].w;
      }
    }
  }

  for (int m = 0; m < rows; ++m) {
    const int i = i0 + ty + 8 * m;
    const int d = d0 + 4 * tx;
    if (i < p.seq_q && d < p.head_dim) store_rounded(o + (int64_t(head) * p.seq_q + i) * p.head_dim + d, sum[m]);
  }
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

extern const attention::Rung registers;
constinit const attention::Rung registers = {
    .name = "registers",
    .idea = "8 x 4 results in the registers of each thread, four numbers a read: a number read serves 4 or 8",
    .forward = {attention::head_dim_not_8_to_256, workspace_bytes, forward}};

}  // namespace tiling
