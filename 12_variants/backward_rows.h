// What both backwards of this chapter, backward.h and hopper_backward.h, have in common: which tiles of queries and
// keys see one another, and the small kernels before and after the gradients. S is a shape: D, Br, threads. `parts` is
// how many semaphores a tile of dQ has.
//
//   prepare    a few lanes per query: log2(e) LSE and delta = rowsum(dO o O); zeros in dQ for rows that see no key
//   of_sinks   a thread block per head: what each row adds to the sink's gradient
#pragma once

#include "attention/backward_workspace.h"
#include "blocks.h"
#include "device/backward_tile.h"
#include "extras.h"
#include "packed.h"

namespace variants {

using attention::BackwardArgs;
using backward_tile::p_factor;

// Tiles of a head's queries of which a row sees one of these keys, from `start` up to `stop`; those of keys of which a
// row of these queries sees one.
template <int Br>
__device__ Tiles query_tiles(const Problem& p, int first_key, int keys) {
  const int last_key = min(first_key + keys, p.seq_k) - 1;
  return {p.queries_of(first_key).first / Br, ceil_div(p.queries_of(last_key).end, Br)};
}
template <int Bc>
__device__ Tiles key_tiles(const Problem& p, int first_row, int rows) {
  const int last_row = min(first_row + rows, p.seq_q) - 1;
  return {p.keys_of(first_row).first / Bc, ceil_div(p.keys_of(last_row).end, Bc)};
}

// The D of V, O, dO and dV.
template <class S>
constexpr int dim_of_v = S::D;

// The query row of a thread of `prepare` and of Dv / 8 - 1 others, which have 8 elements each. It may not exist.
struct PreparedRow {
  unsigned tile, row, lane;  // the row's place in its tile; tiles are counted over all heads
  bool exists;
  backward_tile::RowStatistics statistics;
};

template <class T, class S, int parts>
__device__ PreparedRow prepare_row(Problem p, View<const T> o, const float* lse, View<const T> d_o, float* stats,
                                   int* turns, int* tickets, View<T> dq, const Sequences& sequences) {
  constexpr int D = S::D, Br = S::Br, lanes = dim_of_v<S> / 8;
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x, row = thread / lanes, lane = thread % lanes;
  const unsigned head_tiles = attention::tiles_of_head(p, p.seq_q, p.total_q, Br), tile = row / Br;
  const unsigned head = tile / head_tiles;
  if (thread == 0) *tickets = 0;
  unsigned i = tile % head_tiles * Br + row % Br;  // there may be none such
  lse += size_t(head) * (p.packed ? p.total_q : p.seq_q);
  if (p.packed) {
    if (*sequences.tiles < 0) return {};  // there is nothing to prepare for
    const Sequence of = sequences.of(sequence_at(sequences.begin_q, p.batch, tile % head_tiles, Br));
    i -= attention::first_tile(of.begin_q, of.index, Br) * Br;
    o = o.from_row(of.begin_q), d_o = d_o.from_row(of.begin_q), dq = dq.from_row(of.begin_q), lse += of.begin_q;
    p = alone(p, of);
  }
  const T* const o_row = o.at_row(o.of_head(head, p.heads) + lane, i);
  const T* const d_o_row = d_o.at_row(d_o.of_head(head, p.heads) + lane, i);
  const bool exists = i < unsigned(p.seq_q);
  const backward_tile::RowStatistics of_row =
      backward_tile::row_statistics<dim_of_v<S>>(exists, o_row, d_o_row, lse + i);
  if (exists && p.keys_of(i).end <= p.keys_of(i).first)
    for (int piece = lane; piece < D / 8; piece += lanes)
      store_pack8(dq.at_row(dq.of_head(head, p.heads) + piece, i), Pack8<T>{});
  if (lane == 0) {
    stats[(size_t(tile) * 2) * Br + row % Br] = of_row.lse;
    stats[(size_t(tile) * 2 + 1) * Br + row % Br] = of_row.row_sum;
    if (row % Br < parts) turns[size_t(tile) * parts + row % Br] = 0;
  }
  return {tile, row % Br, lane, exists, of_row};
}
template <class T, class S, int parts>
__global__ void prepare(Problem p,
                        View<const T> o,    // [B, H, Nq, Dv]
                        const float* lse,   // [B, H, Nq]
                        View<const T> d_o,  // [B, H, Nq, Dv]
                        float* stats,       // [B * H * tiles][2][Br]
                        int* turns,         // [B * H * tiles][parts]
                        int* tickets,
                        View<T> dq,  // [B, H, Nq, D]
                        Sequences sequences) {
  prepare_row<T, S, parts>(p, o, lse, d_o, stats, turns, tickets, dq, sequences);
}

// What a warp's score function and mask are told of its keys and a tile of queries.
struct Where {
  int row, key;                    // the first of each
  const uint32_t* bits = nullptr;  // of the keys of a cut tile of a block mask
};

// The same, from the n-th of the tile's queries on.
template <class X>
__device__ Where further(const Where& at, int n) {
  if constexpr (!X::blocks) return {at.row + n, at.key};
  return {at.row + n, at.key, at.bits};
}

// Of the transpose of a warp's scores or of its P, what queries do not see becomes `hidden`, if there is any: x[b][n]
// is a C fragment with keys 16 b to 16 b + 15 and queries 8 n to 8 n + 7. Query i sees key j < Nk if -right <= distance
// <= left, where distance = i + Nk - Nq - j. What bits hide is the caller's.
template <class X, int queries, int blocks>
__device__ __forceinline__ void hide_transpose(float (&x)[blocks][queries / 8][4], const Problem& p, Where at,
                                               float hidden) {
  const SeenKeys seen = seen_by<X>(p, at.row, at.row + queries - 1);
  const int right = X::window ? p.window_right : p.mask == attention::Mask::causal ? 0 : 1 << 30;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int own = at.row + 2 * t + p.seq_k - p.seq_q - at.key - g;  // the distance from key g to query 2 t
  const int nearest = -right - own, farthest = p.window_left - own, keys = p.seq_k - at.key - g;
  const auto hide_if = [&](auto is_hidden) {
#pragma unroll
    for (int b = 0; b < blocks; b++)
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int n = 0; n < queries / 8; n++)
          for (int e = 0; e < 2; e++) {
            const int key = 16 * b + 8 * h;  // distance = own + 8 n + e - key
            if (is_hidden(8 * n + e - key, key)) x[b][n][2 * h + e] = hidden;
          }
  };
  if (at.key + 16 * blocks > seen.last) hide_if([&](int more, int key) { return more < nearest || key >= keys; });
  if (X::window && at.key < seen.first) hide_if([&](int more, int) { return more > farthest; });
}

// The sink is a key whose V is 0: P = exp(sink - LSE), dP = 0, and dS = P (0 - delta), over all rows of a head. The
// threads of a block take rows in turn and add up in one order.
constexpr int sink_threads = 256;
template <class S>
__global__ void __launch_bounds__(sink_threads) of_sinks(Problem p,
                                                         const float* sink,   // [H]
                                                         const float* stats,  // [B * H * tiles][2][Br]
                                                         float* d_sink,       // [H]
                                                         Sequences sequences) {
  constexpr int Br = S::Br;
  __shared__ float sums[sink_threads];
  if (p.packed && *sequences.tiles < 0) return;
  const int head = blockIdx.x, rows = attention::tiles_of_head(p, p.seq_q, p.total_q, Br) * Br;
  const float s = sink[head] * log2_e;
  float sum = 0;
  for (int b = 0; b < attention::batches(p); b++)
    for (int i = threadIdx.x; i < rows; i += sink_threads) {
      const float* tile = stats + (size_t(b * p.heads + head) * rows + i / Br * Br) * 2;
      const float lse = tile[i % Br] + backward_tile::p_factor_exponent, delta = tile[Br + i % Br] * p_factor;
      sum -= exp2_approx(s - lse) * delta;  // a row that does not exist has an LSE of inf
    }
  sums[threadIdx.x] = sum;
  for (int half = sink_threads / 2; half > 0; half /= 2) {
    __syncthreads();  // all sums of the step before are there
    if (int(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) d_sink[head] = sums[0];
}

}  // namespace variants
