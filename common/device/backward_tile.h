// What a backward computes between its products: FlashAttention-2 (Dao 2023), Algorithm 2. Chapter 07 derives it.
//
//   delta = rowsum(dO o O) once, for every query row: row_statistics(), and prepare(), a kernel of them
//   P = exp(S - LSE)       for every tile: make_p()
//   dS = P o (dP - delta)  for every tile: make_ds()
//
// P is rounded to 16 bits only where it is multiplied, for dV. dS is made from P in fp32, and rounded itself.
//
// Where a query has many keys, P is small, and below 2^-14 an fp16 number loses bits: at 2^-17, one key among 131072
// alike, three of its eleven. So P is held 2^12 times as large, for nothing: 2^12 is a 12 in the exponent of
// P = 2^(log2(e) (S - LSE)), and leaves dV in the factor that store_rows() applies at the end. It leaves dS where
// delta is subtracted: dS = (2^12 P) (2^-12 dP - 2^-12 delta), one fused multiply-add. (dS itself is stored as it is.
// It can be large, and fp16 ends at 65504.) P is at most 1, but for the rounding of LSE; 2^12 leaves it a factor of 16
// to overflow, which takes |S| in the millions, and keeps all bits of one key among 2^26.
#pragma once

#include <cmath>
#include <cstdint>

#include "attention/problem.h"
#include "device/atomic_add.h"
#include "device/cuda.h"
#include "device/launch.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace backward_tile {

constexpr float p_factor = 4096;         // 2^12
constexpr float p_factor_exponent = 12;  // log2(p_factor)

// What P and dS of a query row need.
struct RowStatistics {
  float lse;      // log2(e) LSE - 12
  float row_sum;  // 2^-12 delta
};

// For D / 8 neighbouring lanes, each with 8 elements of the row. A row that only fills up the last tile of a head does
// not exist: it gets LSE = +inf, and whatever its S, P = 2^(S - LSE) is 0. A row that sees no key has LSE = -inf, and
// the mask sets all of its P to 0.
template <int D, class T>
__device__ RowStatistics row_statistics(bool exists,
                                        const T* o,        // [8], of this lane
                                        const T* d_o,      // [8], of this lane
                                        const float* lse)  // of the row
{
  watch_step("delta = rowsum(dO O)");
  RowStatistics row = {INFINITY, 0};
  if (exists) {
    const Pack8<T> o_pack = load_pack8(o), d_o_pack = load_pack8(d_o);
    for (int d = 0; d < 8; d++) row.row_sum += to_float(o_pack.x[d]) * to_float(d_o_pack.x[d]);
    row.lse = fmaf(*lse, log2_e, -p_factor_exponent);
  }
  for (int distance = D / 16; distance > 0; distance /= 2)
    row.row_sum += __shfl_xor_sync(0xffffffff, row.row_sum, distance);
  row.row_sum /= p_factor;
  return row;
}

// Which query row a thread of prepare() or prepare_turns() has, with D / 8 - 1 others: tiles of S::Br rows are counted
// over all heads, and `i` in the row's own head.
struct PreparedRow {
  unsigned thread, tile, row, lane, i;
  size_t at;  // of this lane's 8 elements
  RowStatistics statistics;
};

// The statistics of all rows, tile by tile. D / 8 lanes per query row, 8 elements each, S::threads of them in a thread
// block.
template <class T, class S>
__device__ PreparedRow prepare_row(const attention::Problem& p, const T* o, const float* lse, const T* d_o,
                                   float* stats) {
  constexpr int D = S::D, Br = S::Br, lanes = D / 8;
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x, row = thread / lanes, lane = thread % lanes;
  const unsigned head_tiles = ceil_div(p.seq_q, Br), tile = row / Br, head = tile / head_tiles;
  const unsigned i = tile % head_tiles * Br + row % Br;
  const size_t q_row = size_t(head) * p.seq_q + i, at = q_row * D + lane * 8;
  const RowStatistics of_row = row_statistics<D>(i < unsigned(p.seq_q), o + at, d_o + at, lse + q_row);
  if (lane == 0) {
    stats[(size_t(tile) * 2) * Br + row % Br] = of_row.lse;
    stats[(size_t(tile) * 2 + 1) * Br + row % Br] = of_row.row_sum;
  }
  return {thread, tile, row % Br, lane, i, at, of_row};
}

// For a backward in which every block of keys has a part of dQ: the statistics, and the zeros that the parts are added
// to.
template <class T, class S>
__global__ void prepare(attention::Problem p,
                        const T* o,        // [B, H, Nq, D]
                        const float* lse,  // [B, H, Nq]
                        const T* d_o,      // [B, H, Nq, D]
                        float* stats,      // [B * H * tiles][2][Br]
                        float4* dq_sum)    // [B * H * tiles][Br * D / 4]
{
  const unsigned thread = prepare_row<T, S>(p, o, lse, d_o, stats).thread;
  for (int half = 0; half < 2; half++) dq_sum[size_t(thread) * 2 + half] = make_float4(0, 0, 0, 0);
}

// For one in which these blocks take turns: the statistics, zeros in the S::parts semaphores of each tile and in the
// count of tickets, and in dQ for rows that see no key, which no block comes by.
template <class T, class S>
__device__ PreparedRow prepare_row_and_turns(const attention::Problem& p, const T* o, const float* lse, const T* d_o,
                                             float* stats, int* turns, int* tickets, T* dq) {
  const PreparedRow own = prepare_row<T, S>(p, o, lse, d_o, stats);
  if (own.i < unsigned(p.seq_q) && p.visible_keys(own.i) == 0) store_pack8(dq + own.at, Pack8<T>{});
  if (own.lane == 0 && own.row < S::parts) turns[size_t(own.tile) * S::parts + own.row] = 0;
  if (own.thread == 0) *tickets = 0;
  return own;
}
template <class T, class S>
__global__ void prepare_turns(attention::Problem p,
                              const T* o,        // [B, H, Nq, D]
                              const float* lse,  // [B, H, Nq]
                              const T* d_o,      // [B, H, Nq, D]
                              float* stats,      // [B * H * tiles][2][Br]
                              int* turns,        // [B * H * tiles][parts]
                              int* tickets,
                              T* dq)  // [B, H, Nq, D]
{
  prepare_row_and_turns<T, S>(p, o, lse, d_o, stats, turns, tickets, dq);
}

// For one in which they take turns, and another kernel converts the sum: the statistics, zeros in the sum, in the
// semaphores and in the count of tickets.
template <class T, class S>
__global__ void prepare_sums_and_turns(attention::Problem p,
                                       const T* o,        // [B, H, Nq, D]
                                       const float* lse,  // [B, H, Nq]
                                       const T* d_o,      // [B, H, Nq, D]
                                       float* stats,      // [B * H * tiles][2][Br]
                                       float4* dq_sum,    // [B * H * tiles][Br * D / 4]
                                       int* turns,        // [B * H * tiles][parts]
                                       int* tickets) {
  const PreparedRow own = prepare_row<T, S>(p, o, lse, d_o, stats);
  for (int half = 0; half < 2; half++) dq_sum[size_t(own.thread) * 2 + half] = make_float4(0, 0, 0, 0);
  if (own.lane == 0 && own.row < S::parts) turns[size_t(own.tile) * S::parts + own.row] = 0;
  if (own.thread == 0) *tickets = 0;
}

// A warp's 2^12 P^T in the place of S^T, for 16 * blocks keys and `queries` queries. The mask is there in the number of
// these keys that a query sees, and is looked at only if it hides any.
template <int queries, int blocks, class VisibleKeys>
__device__ void make_p(float (&x)[blocks][queries / 8][4], float scale,
                       const float* lse,          // [queries] in shared memory
                       VisibleKeys visible_keys)  // (query): the first one sees the fewest
{
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const float scale_log2 = scale * log2_e;
#pragma unroll
  for (int n = 0; n < queries / 8; n++) {
    const float2 l = *reinterpret_cast<const float2*>(lse + 8 * n + 2 * t);
    for (int b = 0; b < blocks; b++)
      for (int r = 0; r < 4; r++) x[b][n][r] = fmaf(x[b][n][r], scale_log2, r % 2 ? -l.y : -l.x);
  }
  if (visible_keys(0) < 16 * blocks) {
#pragma unroll
    for (int n = 0; n < queries / 8; n++)
      for (int e = 0; e < 2; e++) {
        const int visible = visible_keys(8 * n + 2 * t + e) - g;
        for (int b = 0; b < blocks; b++)
          for (int h = 0; h < 2; h++)
            if (16 * b + 8 * h >= visible) x[b][n][2 * h + e] = -INFINITY;
      }
  }
#pragma unroll
  for (int b = 0; b < blocks; b++)
    for (int n = 0; n < queries / 8; n++)
      for (int r = 0; r < 4; r++) x[b][n][r] = exp2_approx(x[b][n][r]);
}

// For make_ds(): fragments that the lanes have in registers.
template <int blocks, int columns>
__device__ auto fragments_of(const float (&x)[blocks][columns][4]) {
  return [&x](int b, int n) { return make_float4(x[b][n][0], x[b][n][1], x[b][n][2], x[b][n][3]); };
}

// A warp's dS^T in the place of dP^T. p(b, n) is fragment [b][n] of its 2^12 P^T.
template <int queries, int blocks, class Fragment>
__device__ void make_ds(float (&x)[blocks][queries / 8][4], Fragment p,
                        const float* row_sum)  // [queries] in shared memory
{
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < queries / 8; n++) {
    const float2 d = *reinterpret_cast<const float2*>(row_sum + 8 * n + 2 * t);
    for (int b = 0; b < blocks; b++) {
      const float4 p_reg = p(b, n);
      x[b][n][0] = p_reg.x * fmaf(x[b][n][0], 1 / p_factor, -d.x);
      x[b][n][1] = p_reg.y * fmaf(x[b][n][1], 1 / p_factor, -d.y);
      x[b][n][2] = p_reg.z * fmaf(x[b][n][2], 1 / p_factor, -d.x);
      x[b][n][3] = p_reg.w * fmaf(x[b][n][3], 1 / p_factor, -d.y);
    }
  }
}

// What a kernel reads and writes whose thread blocks own keys and add their parts of dQ to a sum in memory.
template <class T>
struct Tensors {
  const T* q;           // [B, H, Nq, D]
  const T* k;           // [B, Hkv, Nk, D]
  const T* v;           // [B, Hkv, Nk, D]
  const T* d_o;         // [B, H, Nq, D]
  const float* stats;   // [B * H * tiles][2][Br], of LSE, then of delta
  float* dq_sum;        // [B * H * tiles][warps][8][32][4]: fragments (2 x 4 of 16 x 8) of 32 lanes
  T* dk;                // [B, Hkv, Nk, D]
  T* dv;                // [B, Hkv, Nk, D]
  int kv_tiles;         // tiles of a kv head
  int q_tiles, q_rows;  // tiles and rows of all query heads that read one kv head
};

// Adds the warp's part of dQ of tile `tile`, counted over all heads.
template <class S>
__device__ void add_dq(float* dq_sum,  // [B * H * tiles][warps][8][32][4]
                       const float (&dq_reg)[2][4][4], size_t tile) {
  float* sum = dq_sum + (tile * S::threads + threadIdx.x / 32 * 32) * 32 + threadIdx.x % 32 * 4;
#pragma unroll
  for (int b = 0; b < 2; b++)
    for (int n = 0; n < 4; n++) atomic_add_4(sum + (b * 4 + n) * 32 * 4, dq_reg[b][n]);
}

// Scales and rounds that sum. A thread has rows g and g + 8 of one fragment, 8 columns each: those of four lanes.
template <class T, class S>
__device__ void convert_dq(const attention::Problem& p,
                           const float4* dq_sum,  // [B * H * tiles][warps][2][4][8 g][4 t]
                           T* dq)                 // [B, H, Nq, D]
{
  constexpr int D = S::D;
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x;
  const int g = thread % 8, n = thread / 8 % 4, b = thread / 32 % 2, warp = thread / 64 % S::warps;
  const unsigned tile = thread / 64 / S::warps, head_tiles = ceil_div(p.seq_q, S::Br), head = tile / head_tiles;
  const int i = tile % head_tiles * S::Br + warp / (D / 32) * 32 + b * 16 + g;
  watch_step("dQ = scale * sum of its parts");
  Pack8<T> rows[2];
  for (int t = 0; t < 4; t++) {
    const float4 c = dq_sum[size_t(thread) * 4 + t];
    rows[0].x[2 * t] = from_float<T>(c.x * p.scale);
    rows[0].x[2 * t + 1] = from_float<T>(c.y * p.scale);
    rows[1].x[2 * t] = from_float<T>(c.z * p.scale);
    rows[1].x[2 * t + 1] = from_float<T>(c.w * p.scale);
  }
  T* to = dq + (size_t(head) * p.seq_q + i) * D + warp % (D / 32) * 32 + n * 8;
  for (int h = 0; h < 2; h++)
    if (i + 8 * h < p.seq_q) store_pack8(to + 8 * h * D, rows[h]);
}

}  // namespace backward_tile
