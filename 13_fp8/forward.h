// The chapter's loop: chapter 10's 10_dynamic, with both products in e4m3. `direct` (1_direct.cu) is this file with
// the constants of the struct Direct; every other rung is a file that sets one of them anew and says why.
//
// A thread block stays as long as the kernel runs and takes tile after tile, each Br query rows of one head: whoever is
// done takes the next one that nobody has. Each consumer warpgroup computes 64 rows of it, from Q to O; one more
// warpgroup is the producer, of which two warps have work, or four (2_inside.cu, from_e4m3.h). What each does, waits
// for, and signals (->), with the turns of `turns`:
//
//   producer, warp 0   which tile, and its Q  waits for q_empty                      -> q_full
//                      K and V, tile by tile  waits for k_empty, v_empty             -> k_full, v_full
//   producer, warp 1   O to memory            waits for q_full, o_full               -> q_empty, o_empty
//   consumers          the first S            waits for q_full, k_full, its turn     -> the next turn, k_empty
//                      S(j), then O += P V(j-1) starts, in its turn                  -> k_empty; of the last S q_empty
//                      x = scale log2(e) S(j) - m while P V(j-1) runs
//                      P V(j-1) is there                                             -> the next turn, v_empty
//                      P = 2^x, rounded to e4m3, and O follows m where it rises
//                      the last P V                                                  -> v_empty
//                      O scale_v / l          waits for o_empty                      -> o_full
//
// Where O is added up in fp32 at D = 256, a consumer makes P V(j-1) before S(j), in the same registers, part by part.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/dependent_launch.h"
#include "device/elect.h"
#include "device/lazy_softmax.h"
#include "device/ldmatrix.h"
#include "device/limits.h"
#include "device/math.h"
#include "device/mbarrier.h"
#include "device/named_barrier.h"
#include "device/proxy_fence.h"
#include "device/ring.h"
#include "device/setmaxnreg.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/warpgroup_tile.h"
#include "device/watch.h"
#include "quantize_tiles.h"

namespace fp8 {

using attention::ForwardArgs;
using attention::key_tiles;
using attention::Tile;
using attention::TileList;
using namespace warpgroup_tile;

constexpr int Bc = fp8_tile;
static_assert(Bc == key_tile);

// What rungs choose, as `direct` has it. Another one derives from it and sets anew what it changes.
struct Direct {
  // Where m puts a row's largest x (start), and how large an x may become before m rises (headroom)
  using Range = lazy_softmax::AtMostOne;
  // The sums of weights say whether m has to rise, and nobody looks for the largest x
  static constexpr bool by_sums = false;
  // In the first so many tiles m follows the row maximum all the same, and the heaviest weight is not rounded: m rises
  // before the weights are made, or they are made again where a sum says so
  template <int D>
  static constexpr int followed = 0;
  template <int D>
  static constexpr bool before = false;
  // The consumers take turns at the tensor cores
  static constexpr bool turns = false;
  // Q is in registers, at D = 128
  static constexpr bool q_held = false;
  // After so many tiles the tensor core's sum is added to O, in fp32; at D = 256 after each; 0: never
  static constexpr int flush = 0;
  // What Q, K and V are rounded to (attention/problem.h)
  static constexpr attention::EightBits rounding = attention::scale_of_tensor;
  // V comes transposed; or in rows, which the producer transposes on their way (2_inside.cu); or the producer
  // transposes it in global memory, before the loop loads it (from_e4m3.h)
  static constexpr V v = V::transposed;
  // What the producer has to know where it transposes V alongside (from_e4m3.h)
  struct Transposing {};
  // Up to D = 256, where a thread block has memory for one V; or up to 128
  static constexpr auto unsupported = attention::not_for_hopper_to_256;
};

// 65536 registers are 168 for each of 384 threads, or 128 for each of 512. The producer gives most of its own away.
template <int D, V v = V::transposed>
struct Shape : Shape<D> {};
template <>
struct Shape<256> {
  static constexpr int consumers = 2, stages = 2, queries = 1;  // 128 registers of O, 64 of S, 16 of P, 8 of Q; 225 KB
  static constexpr int producer_registers = 24, consumer_registers = 240;
};
template <>
struct Shape<128> {
  static constexpr int consumers = 2, stages = 4,
                       queries = 2;  // a thread has 64 registers of O, 64 of S, 16 of P; 193 KB
  static constexpr int producer_registers = 24, consumer_registers = 240;
};
template <>
struct Shape<64> {
  static constexpr int consumers = 3, stages = 6, queries = 2;  // 32 registers of O, 64 of S, 16 of P; 145 KB
  static constexpr int producer_registers = 32, consumer_registers = 160;
};
template <>
struct Shape<128, V::rows> {
  static constexpr int consumers = 2, stages = 3, queries = 2;
  static constexpr int producer_registers = 56, consumer_registers = 224;
};
template <>
struct Shape<64, V::rows> {
  static constexpr int consumers = 3, stages = 6, queries = 2;
  static constexpr int producer_registers = 56, consumer_registers = 152;
};
template <int D>
constexpr int Br = int(Shape<D>::consumers) * wgmma_rows;
template <int D>
constexpr int threads = (Shape<D>::consumers + 1) * warpgroup_threads;
constexpr int turn_threads = 2 * warpgroup_threads;  // who passes a turn on, and who waits for it

template <class T, int D, int stages, int queries>
struct Tiles {
  e4m3 q[queries][Br<D> * D];  // each of these in pages of at most 128 bytes a row, swizzled
  e4m3 k[stages][Bc * D];      //
  e4m3 v[stages][D * Bc];      // transposed, in rows of Bc bytes
  T o[Br<D> * D];              // in D / 64 pages of 128 bytes a row, swizzled
  int index[queries];          // in the list, of the tile that each Q belongs to
  Mbarrier q_full[queries], q_empty[queries], o_full, o_empty;
  Mbarrier k_full[stages], k_empty[stages], v_full[stages], v_empty[stages];
};
template <int D, V v>
struct RowsOfV {};
template <int D>
struct RowsOfV<D, V::rows> {
  alignas(tile_alignment) e4m3 v_rows[2][Bc * D];  // before it is transposed
  Mbarrier rows_full[2], rows_empty[2];
};
template <class R, class T, int D>
struct Shared : Tiles<T, D, Shape<D, R::v>::stages, Shape<D>::queries>, RowsOfV<D, R::v> {};
template <int D>
using Queries = Ring<Shape<D>::queries>;

// Scales of tensors; or of tiles, of V as log2.
struct Scales {
  const float *q, *k, *v;
  int q_tiles, k_tiles;  // of a head
};

// Tells the others the index of the next tile, which q_full will say is there. One thread.
template <class Smem, class Queries>
__device__ void announce(Smem& smem, int index, const Queries& q) {
  mbarrier_wait(&smem.q_empty[q.place], q.parity ^ 1);
  smem.index[q.place] = index;
}

// The others' next tile; false if none is left.
template <class Smem, int rows, class Queries>
__device__ bool next(Smem& smem, const TileList<rows>& tiles, Tile& tile, const Queries& q) {
  mbarrier_wait(&smem.q_full[q.place], q.parity);
  return tiles.get(tile, smem.index[q.place]);
}

// Starts the copies of a tile. One thread.
template <class R, class T, int D, class Keys>
__device__ __forceinline__ void load(Shared<R, T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const Problem& p, Tile tile, Keys& ring, Queries<D>& q,
                                     [[maybe_unused]] Ring<2>& v_rows,
                                     [[maybe_unused]] typename R::Transposing& transposing) {
  mbarrier_arrive_expect_tx(&smem.q_full[q.place], Br<D> * D);
  tensor_load(smem.q[q.place], q_map, &smem.q_full[q.place], 0, tile.i0, 0, tile.head);
  const int tiles = key_tiles<Bc>(p, tile.i0 + Br<D> - 1), kv_head = p.kv_head(tile.head);
  if constexpr (R::v == V::alongside) transposing.wait_for(kv_head);
#pragma unroll 1
  for (int j = 0; j < tiles; j++, ring.advance()) {
    mbarrier_wait(&smem.k_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.k_full[ring.place], Bc * D);
    tensor_load(smem.k[ring.place], k_map, &smem.k_full[ring.place], 0, j * Bc, 0, kv_head);
    if constexpr (R::v == V::rows) {
      R::template load_rows<D>(smem, v_map, j, kv_head, v_rows);
    } else {
      mbarrier_wait(&smem.v_empty[ring.place], ring.parity ^ 1);
      mbarrier_arrive_expect_tx(&smem.v_full[ring.place], D * Bc);
      tensor_load(smem.v[ring.place], v_map, &smem.v_full[ring.place], j * Bc, 0, kv_head);
    }
  }
}

// P = 2^x as A fragments of e4m3, and each row's sum of P before it is rounded. A register of a fragment has four
// columns, and a lane has them in two fragments of x side by side, two in each.
template <int columns>
__device__ __forceinline__ void exponentiate(uint32_t (&p)[1][columns / 4][4], const float (&x)[1][columns][4],
                                             float (&sums)[2]) {
  sums[0] = sums[1] = 0;
#pragma unroll
  for (int step = 0; step < columns / 4; step++)
#pragma unroll
    for (int r = 0; r < 4; r++) {
      const int h = r % 2, n = 4 * step + r / 2 * 2;
      const float *left = x[0][n] + 2 * h, *right = x[0][n + 1] + 2 * h;
      const float p0 = exp2_approx(left[0]), p1 = exp2_approx(left[1]);
      const float p2 = exp2_approx(right[0]), p3 = exp2_approx(right[1]);
      sums[h] += (p0 + p1) + (p2 + p3);
      p[0][step][r] = pack4<e4m3>(p0, p1, p2, p3);
    }
}

// S = Q K^T, with Q from shared memory or from registers.
template <int D, int steps>
__device__ __forceinline__ void start_s(float (&s)[1][Bc / 8][4], const e4m3* q_rows, const uint32_t (&q)[steps][4],
                                        const e4m3* k) {
  if constexpr (steps < D / 32) {
    start_product<Br<D>, D, Bc>(s, q_rows, k);
  } else {
    const uint64_t k_tile = descriptor_of_rows<D>(k);
#pragma unroll
    for (int step = 0; step < steps; step++)
      wgmma<e4m3>(s[0], q[step], wgmma_advance(k_tile, step_begin<Bc, D, e4m3>(step)), step > 0);
    wgmma_commit();
  }
}

// A warp's 16 rows of Q as A fragments: their first 128 columns, or fewer, from rows of 128 bytes.
template <int steps>
__device__ __forceinline__ void load_q(uint32_t (&q)[steps][4], const e4m3* rows) {
  const int lane = threadIdx.x % 32, row = lane % 16;
#pragma unroll
  for (int step = 0; step < steps; step++)
    ldmatrix_x4(q[step], rows + row * 128 + ((2 * step + lane / 16) ^ (row % 8)) * 16);
}

// Shows P before it is rounded.
template <int columns>
__device__ __forceinline__ void watch_weights([[maybe_unused]] Watched tile,
                                              [[maybe_unused]] const float (&x)[1][columns][4]) {
#ifdef WORKBOOK_SIMT
  float p[1][columns][4];
  for (int n = 0; n < columns; n++)
    for (int r = 0; r < 4; r++) p[0][n][r] = exp2_approx(x[0][n][r]);
  watch("P", tile, p);
#endif
}

// O += part, of columns from `first` on
template <int all, int columns>
__device__ __forceinline__ void add(float (&o)[1][all][4], const float (&part)[1][columns][4], int first = 0) {
#pragma unroll
  for (int n = 0; n < columns; n++)
    for (int r = 0; r < 4; r++) o[0][first / 8 + n][r] += part[0][n][r];
}

// At D = 256 what a consumer multiplies in its turn: P V, which is added to O in fp32, and then the next S, unless
// there is none. Beside O a thread has 64 registers for both, those of S, which is used up. So each product has 32 of
// them: 64 columns of P V, or 64 keys of S. While one is added to O, the tensor cores make the next. A quarter of
// Q's columns is in registers. It is about as fast without.
template <int D, bool last, int held>
__device__ __forceinline__ void add_in_quarters(float (&o)[1][D / 8][4], float (&s)[1][Bc / 8][4],
                                                const uint32_t (&p)[1][Bc / 32][4], const e4m3* v,
                                                const uint32_t (&q)[held][4], const e4m3* q_rows, const e4m3* k) {
  constexpr int columns = Bc / 2, quarters = D / columns;
  using Part = float[1][columns / 8][4];
  Part* const parts = reinterpret_cast<Part*>(s[0]);
#pragma unroll
  for (int i = 0; i < quarters + 2; i++) {
    Part& part = parts[i % 2];
    if (i >= 2) {
      if (last && i == quarters + 1)
        wgmma_wait<0>(part);
      else
        wgmma_wait<1>(part);
      add(o, part, (i - 2) * columns);
    }
    if (i < quarters) {
      wgmma_fence(part);
      start_sum_by_transpose<columns, Bc>(part, p, v + i * columns * Bc, false);
    } else if (!last) {
      const uint64_t q_tile = descriptor_of_rows<D>(q_rows);
      const uint64_t k_tile = descriptor_of_rows<D>(k + (i - quarters) * columns * bytes_of_row<D, e4m3>);
      wgmma_fence(part);
#pragma unroll
      for (int step = 0; step < D / 32; step++) {
        const uint64_t k_step = wgmma_advance(k_tile, step_begin<Bc, D, e4m3>(step));
        if (step < held)
          wgmma<e4m3>(part[0], q[step], k_step, step > 0);
        else
          wgmma<e4m3>(part[0], wgmma_advance(q_tile, step_begin<Br<D>, D, e4m3>(step)), k_step, true);
      }
      wgmma_commit();
    }
  }
}

// x = scale log2(e) S - m in place of S, of a tile with a bias: x + bias. Whether m has to rise for it, if that is
// asked.
template <bool ask, int columns, class Rows>
__device__ __forceinline__ bool subtract_max(float (&x)[1][columns][4], const Rows& rows, float scale_log2,
                                             float bias) {
  Rows biased = rows;
  for (int h = 0; h < 2; h++) biased.m[0][h] -= bias;
  if constexpr (ask) {
    return lazy_softmax::subtract_max(x, biased, scale_log2);
  } else {
#pragma unroll
    for (int n = 0; n < columns; n++)
      for (int r = 0; r < 4; r++) x[0][n][r] = fmaf(x[0][n][r], scale_log2, -biased.m[0][r / 2]);
    return false;
  }
}

// The largest scale of so many tiles. All lanes get it.
__device__ __forceinline__ float largest_of(const float* scales, int tiles) {
  const int lane = threadIdx.x % 32;
  float largest = scales[min(lane, tiles - 1)];
#pragma unroll 1
  for (int j = lane + 32; j < tiles; j += 32) largest = fmaxf(largest, scales[j]);
  return warp_max(largest);
}

// V's scales count as multiples of the largest one, and none as less than this multiple, in log2. What V has in such a
// tile is nothing beside the largest. But its weights belong to l, which adds up P times the inverse of the multiple:
// P must not be too small for fp32, nor the inverse too large.
constexpr float least_bias = -80;

// A consumer's 64 rows of a tile, which is the block's number `turn`.
template <class R, class T, int D, class Keys>
__device__ __forceinline__ void attend(Shared<R, T, D>& smem, const Problem& p, Tile tile, int turn, Keys& ring,
                                       const Queries<D>& q, const Scales& scales, float* lse) {
  constexpr bool q_held = R::q_held && D == 128;  // at 64 there are no registers for it, and at 256 for all of it
  constexpr bool of_tiles = R::rounding >= attention::scale_of_tile;
  constexpr bool in_quarters = R::flush > 0 && D == 256;  // and there are none for a second sum beside S
  constexpr int tiles_of_a_sum = R::flush > 0 ? R::flush : 1;
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 rows
  const int tiles = key_tiles<Bc>(p, tile.i0 + Br<D> - 1);
  const int own_tiles =
      tile.i0 + wgmma_rows * consumer < p.seq_q ? key_tiles<Bc>(p, tile.i0 + wgmma_rows * (consumer + 1) - 1) : 1;
  const int first_row = tile.i0 + warp_row, warp_first = p.visible_keys(first_row);
  const e4m3* q_rows = smem.q[q.place] + wgmma_rows * consumer * bytes_of_row<D, e4m3>;

  // Scales: of Q and of a tile of K in that of S; that of V as below
  const int q_tile = of_tiles ? tile.head * scales.q_tiles + min(first_row, p.seq_q - 1) / fp8_tile : 0;
  const float* const k_scales = scales.k + (of_tiles ? p.kv_head(tile.head) * scales.k_tiles : 0);
  const float* const v_scales = scales.v + (of_tiles ? p.kv_head(tile.head) * scales.k_tiles : 0);
  const float rotated = R::rounding == attention::rotated_tile ? 1.f / D : 1.f;
  constexpr float largest_scale = 0x1p126f;  // of a larger one the score 0 would become NaN
  const auto scale_of = [&](float k_scale) {
    const float scale = p.scale * rotated * scales.q[q_tile] * k_scale;
    return scale > largest_scale ? largest_scale : scale;  // which leaves NaN
  };
  const float v_largest = of_tiles ? largest_of(v_scales, own_tiles) : 0;
  const float v_scale = of_tiles ? exp2_approx(v_largest) : *v_scales;

  float s_reg[1][Bc / 8][4], o_reg[1][D / 8][4] = {};
  float part_reg[1][D / 8][4];  // of O, since it was last added up
  uint32_t p_reg[1][Bc / 32][4], q_reg[q_held ? D / 32 : in_quarters ? 2 : 1][4];
  lazy_softmax::Rows<1, typename R::Range> rows;
  const Watched state = {int64_t(tile.head) * p.seq_q + first_row, 0, p.seq_q - first_row, D};
  const auto scores = [&](int j) { return Watched{state.row, j * Bc, state.rows, p.seq_k - j * Bc}; };
  float weight = 1;  // of a tile's P in l
  // The largest weight of a row whose m is its maximum
  constexpr float heaviest = 1 << int(R::Range::start);
  // x in place of S, and whether m has to rise for it
  const auto make_x = [&](int j) {
    const float scale = scale_of(k_scales[of_tiles ? j : 0]);
    watch_step("2. x = S - m; m rises only if it must; P = 2^x");
    watch("S", scores(j), s_reg, scale);
    float bias = 0;
    if constexpr (of_tiles) {
      bias = v_scales[j] - v_largest;
      if (bias < least_bias) bias = least_bias;  // which leaves NaN
      weight = exp2_approx(-bias);
    }
    const bool above = subtract_max<!R::by_sums>(s_reg, rows, scale * log2_e, bias);
    if ((j + 1) * Bc > warp_first)  // across the diagonal, or the end of the keys
      lazy_softmax::hide(s_reg, [&](int i) { return p.visible_keys(first_row + i) - j * Bc; });
    return above;
  };
  // m rises; l and O follow
  const auto raise = [&] {
    float correction[1][2];
    lazy_softmax::raise_max(s_reg, rows, correction, state);
    lazy_softmax::rescale(o_reg, correction);
    if constexpr (R::flush > 1) lazy_softmax::rescale(part_reg, correction);
  };
  // P, and l. From `unscanned` on the sums say whether m has to rise: no weight is larger than their sum. The first
  // tile sets m, and none of its weights is too large. Where m may rise before that, too, one piece of code is for
  // both times: with two, ptxas spills
  const auto make_p = [&](int j) {
    constexpr bool before = R::template before<D>;
    const bool follows = j > 0 && j < R::template followed<D>;
    bool rises = before && follows;
    float sums[2];
#pragma unroll before ? 1 : 2
    for (int round = 0; round < 2; round++) {
      if (rises) raise();
      exponentiate(p_reg, s_reg, sums);
      if (!R::by_sums || j == 0 || rises) break;
      const bool unset = rows.minus_l[0][0] == INFINITY || rows.minus_l[0][1] == INFINITY;
      const float largest = follows && !before ? heaviest : largest_e4m3;
      rises = __any_sync(0xffffffff, unset || !(fmaxf(sums[0], sums[1]) <= largest));
      if (!rises) break;
    }
    for (int h = 0; h < 2; h++) rows.minus_l[0][h] = fmaf(-weight, sums[h], rows.minus_l[0][h]);
    watch_weights(scores(j), s_reg);
  };
  // The sum that P V of a tile is added to: O, or that of R::flush tiles, which begins anew with tile j or goes on
  auto& sum_reg = R::flush == 0 ? o_reg : part_reg;
  const auto start_o = [&](const e4m3* v, int j) {
    start_sum_by_transpose<D, Bc>(sum_reg, p_reg, v, R::flush == 0 || j % tiles_of_a_sum > 0);
  };
  const auto wait_for_turn = [&] {
    if constexpr (R::turns) named_barrier_sync(1 + consumer, turn_threads);  // no result depends on it
  };
  const auto pass_turn = [&] {
    if constexpr (R::turns) named_barrier_arrive(1 + (consumer + 1) % Shape<D>::consumers, turn_threads);
  };
  // This warp no longer needs the buffer that the mbarrier guards.
  const auto release = [&](Mbarrier& empty) {
    if (lane == 0) mbarrier_arrive(&empty);
  };

  // Q is no longer needed once the last S is there
  const auto release_q = [&](int j) {
    if (!q_held && j == own_tiles - 1) release(smem.q_empty[q.place]);
  };
  // V of this tile of keys. It is needed later, and has come by now: the exponentials, which are behind the loop in
  // which this waits, cannot be moved in front of it, and so the turn is passed on before they begin
  const auto wait_for_v = [&] { mbarrier_wait(&smem.v_full[ring.place], ring.parity); };

  if constexpr (q_held || in_quarters) load_q(q_reg, q_rows + warp_row % wgmma_rows * 128);
  if constexpr (q_held) release(smem.q_empty[q.place]);
  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  watch_step("1. S = Q K^T");
  wait_for_turn();
  wgmma_fence();
  start_s<D>(s_reg, q_rows, q_reg, smem.k[ring.place]);
  wgmma_wait<0>(s_reg);
  pass_turn();
  release(smem.k_empty[ring.place]);
  wait_for_v();
  release_q(0);
  if (make_x(0) || R::by_sums) lazy_softmax::raise(s_reg, o_reg, rows, state);
  make_p(0);

#pragma unroll 1
  for (int j = 1; j < own_tiles; j++) {
    const Keys before = ring;
    ring.advance();
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    watch_step("1. S = Q K^T; beside it O += P V of the tile before");
    wait_for_turn();
    if constexpr (in_quarters) {
      add_in_quarters<D, false>(o_reg, s_reg, p_reg, smem.v[before.place], q_reg, q_rows, smem.k[ring.place]);
      release(smem.v_empty[before.place]);
      wgmma_wait<0>(s_reg);
      pass_turn();
    } else {
      wgmma_fence();
      start_s<D>(s_reg, q_rows, q_reg, smem.k[ring.place]);
      start_o(smem.v[before.place], j - 1);
      wgmma_wait<1>(s_reg);
    }
    release(smem.k_empty[ring.place]);
    release_q(j);
    const bool above = make_x(j);
    if constexpr (!in_quarters) {
      wgmma_wait<0>(sum_reg);
      pass_turn();
      release(smem.v_empty[before.place]);
    }
    wait_for_v();
    if constexpr (R::flush > 0 && !in_quarters)
      if (j % tiles_of_a_sum == 0) add(o_reg, part_reg);
    if (above) raise();
    watch_rows(state, rows);
    if constexpr (R::flush <= 1) watch("O", state, o_reg, v_scale);
    make_p(j);
  }

  watch_step("3. O += P V");
  if constexpr (in_quarters) {
    add_in_quarters<D, true>(o_reg, s_reg, p_reg, smem.v[ring.place], q_reg, q_rows, nullptr);
  } else {
    wgmma_fence();
    start_o(smem.v[ring.place], own_tiles - 1);
    wgmma_wait<0>(sum_reg);
    if constexpr (R::flush > 0) add(o_reg, part_reg);
  }
  release(smem.v_empty[ring.place]);
  ring.advance();
  watch_rows(state, rows);
  watch("O", state, o_reg, v_scale);

  // Tiles of keys that only the other warpgroups compute
#pragma unroll 1
  for (int j = own_tiles; j < tiles; j++, ring.advance()) {
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    release(smem.k_empty[ring.place]);
    mbarrier_wait(&smem.v_full[ring.place], ring.parity);
    release(smem.v_empty[ring.place]);
    wait_for_turn();
    pass_turn();
  }

  watch_step("O / l and LSE");
  const int g = lane / 4;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = first_row + 8 * h + g;
    const float l = rows.l(0, h), factor = l > 0 ? v_scale / l : 0;  // l = 0: the row sees no key
    if (lane % 4 == 0 && row < p.seq_q) lse[size_t(tile.head) * p.seq_q + row] = (rows.m[0][h] + log2_approx(l)) * ln_2;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      for (int c = 0; c < 2; c++) o_reg[0][n][2 * h + c] *= factor;
  }
  uint32_t o_half[1][D / 16][4];
  swizzled_tile::round_fragments<T, D>(o_half, o_reg);
  mbarrier_wait(&smem.o_empty, turn % 2 ^ 1);
  swizzled_tile::store_fragments<Br<D>, D>(smem.o + warp_row * page_row, o_half, 0);
  fence_proxy_async();
  __syncwarp();  // the warp's rows of O are in shared memory
  release(smem.o_full);
}

template <class R, class T, int D>
__global__ void __launch_bounds__(threads<D>, 1)
    forward(const __grid_constant__ TensorMap q_map,  // of Q [B * H, Nq, D], in boxes of Br rows
            const __grid_constant__ TensorMap k_map,  // of K [B * Hkv, Nk, D], in boxes of Bc rows
            const __grid_constant__ TensorMap v_map,  // of V [B * Hkv, D, keys], in boxes of Bc keys; or as K's
            const __grid_constant__ TensorMap o_map,  // of O [B * H, D / 64, Nq, 64], in boxes of Br rows
            Problem p, TileList<Br<D>> tiles,
            int* taken,                 // how many of the list, without the first of each thread block
            Scales scales, float* lse,  // [B, H, Nq]
            typename R::Transposing transposing) {
  using Shape = fp8::Shape<D, R::v>;
  constexpr int consumers = Shape::consumers, stages = Shape::stages;
  Shared<R, T, D>& smem = *dynamic_shared<Shared<R, T, D>, tile_alignment>();
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shape::queries; i++) {
      mbarrier_init(&smem.q_full[i], 1);
      mbarrier_init(&smem.q_empty[i], 4 * consumers + (R::v == V::rows ? 3 : 1));  // all warps that ask which tile
    }
    if constexpr (R::v == V::rows)
      for (int i = 0; i < 2; i++) {
        mbarrier_init(&smem.rows_full[i], 1);
        mbarrier_init(&smem.rows_empty[i], 2);
      }
    mbarrier_init(&smem.o_full, 4 * consumers);
    mbarrier_init(&smem.o_empty, 1);
    for (int i = 0; i < stages; i++) {
      mbarrier_init(&smem.k_full[i], 1);
      mbarrier_init(&smem.v_full[i], R::v == V::rows ? 2 : 1);
      mbarrier_init(&smem.k_empty[i], 4 * consumers);
      mbarrier_init(&smem.v_empty[i], 4 * consumers);
    }
    fence_mbarrier_init();
  }
  grid_dependency_wait();  // numbers in eight bits, and their scales, are there
  __syncthreads();         // and the mbarriers

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  Ring<stages> ring;
  Queries<D> q;
  Ring<2> v_rows;
  Tile tile;
  if (warpgroup == consumers) {
    setmaxnreg_dec<Shape::producer_registers>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp == 0 && elect_one()) {
      int index = blockIdx.x;
      for (; tiles.get(tile, index); index = gridDim.x + atomicAdd(taken, 1), q.advance()) {
        announce(smem, index, q);
        load<R>(smem, q_map, k_map, v_map, p, tile, ring, q, v_rows, transposing);
      }
      announce(smem, index, q);
      mbarrier_arrive(&smem.q_full[q.place]);  // no tile is left
    } else if (warp == 1 && elect_one()) {
      for (int turn = 0; next(smem, tiles, tile, q); turn++, q.advance()) {
        mbarrier_arrive(&smem.q_empty[q.place]);
        mbarrier_wait(&smem.o_full, turn % 2);
        tensor_store(o_map, smem.o, 0, tile.i0, 0, tile.head);
        bulk_commit();
        bulk_wait_read<0>();  // O has been read: its place may be filled again, and the block may end
        mbarrier_arrive(&smem.o_empty);
      }
    } else if constexpr (R::v == V::rows) {
      if (warp >= 2)
        for (; next(smem, tiles, tile, q); q.advance()) {
          R::template transpose_tiles<D>(smem, key_tiles<Bc>(p, tile.i0 + Br<D> - 1), ring, v_rows, warp - 2);
          if (elect_one()) mbarrier_arrive(&smem.q_empty[q.place]);
        }
    } else if constexpr (R::v == V::alongside) {
      if (warp >= 2) transposing.template transpose_tiles<D>();
    }
  } else {
    setmaxnreg_inc<Shape::consumer_registers>();
    if (R::turns && warpgroup == consumers - 1)
      named_barrier_arrive(1, turn_threads);  // the first consumer's first turn
    for (int turn = 0; next(smem, tiles, tile, q); turn++, q.advance()) {
      __syncwarp();  // all lanes know which tile it is: behind this, lane 0 may arrive at q_empty for all of them
      attend<R, T, D>(smem, p, tile, turn, ring, q, scales, lse);
    }
    if (R::turns && warpgroup == 0)
      named_barrier_sync(1, turn_threads);  // takes the last turn; no result depends on it
  }
}

inline Scales tile_scales(const EightBitTiles& eight) {
  return {eight.q_scales, eight.k_scales, eight.v_exponents, eight.q_tiles, eight.k_tiles};
}

// The loop, of tensors in eight bits.
template <class R, class T, int D, class Eight>
void attend(const Problem& p, const ForwardArgs& args, const Eight& eight, const Scales& scales, cudaStream_t stream,
            const typename R::Transposing& transposing = {}) {
  const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
  const auto rows_of = [](const e4m3* x, int matrices, int rows, int box_rows) {
    constexpr int columns = bytes_of_row<D, e4m3>, pages = D / columns;
    return tensor_map(x, {columns, rows, pages, matrices}, {D, columns, int64_t(D) * rows},
                      {columns, box_rows, pages, 1});
  };
  const TensorMap v_map = R::v == V::rows ? rows_of(eight.v, kv_heads, p.seq_k, Bc)
                                          : tensor_map(eight.v, {eight.keys, D, kv_heads},
                                                       {eight.keys, int64_t(eight.keys) * D}, {Bc, D, 1});
  const auto tiles = attention::all_tiles<Br<D>>(p, attention::heads_that_run_together(p));
  const unsigned blocks = std::min(multiprocessors(), tiles.heads * tiles.row_tiles);
  launch_dependent(forward<R, T, D>, {blocks, threads<D>, sizeof(Shared<R, T, D>), stream},
                   rows_of(eight.q, heads, p.seq_q, Br<D>), rows_of(eight.k, kv_heads, p.seq_k, Bc), v_map,
                   tile_map<D>(static_cast<T*>(args.o), heads, p.seq_q, Br<D>), p, tiles, eight.taken, scales, args.lse,
                   transposing);
}

template <class R, class T, int D>
void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  const auto tensors = attention::tensors_of<T>(args);
  if constexpr (R::rounding < attention::scale_of_tile) {
    const EightBits eight = in_workspace(p, args.workspace);
    quantize<T, D, R::v>(p, tensors, eight, stream);
    attend<R, T, D>(p, args, eight, {eight.scales, eight.scales + 1, eight.scales + 2, 0, 0}, stream);
  } else {
    const EightBitTiles eight = tiles_in_workspace(p, args.workspace, false);
    quantize_tiles<T, D, R::rounding == attention::rotated_tile>(p, tensors, eight, stream);
    attend<R, T, D>(p, args, eight, tile_scales(eight), stream);
  }
}

template <class R>
constexpr bool to_256 = R::unsupported == attention::not_for_hopper_to_256;

template <class R>
void run_of_head_dim(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  const auto run_of = [&]<class T, int D>() { run<R, T, D>(p, args, stream); };
  if constexpr (to_256<R>)
    attention::by_dtype_and_head_dim<64, 128, 256>(p, run_of);
  else
    attention::by_dtype_and_head_dim<64, 128>(p, run_of);
}

template <class R>
constexpr attention::Forward unpadded = {
    .unsupported = R::unsupported,
    .workspace_bytes = R::rounding < attention::scale_of_tile ? workspace_bytes : tiles_workspace_bytes<false>,
    .run = run_of_head_dim<R>,
    .writes_lse = true,
    .eight_bits = R::rounding,
    .cuts_sums = R::flush == 0};

}  // namespace fp8
