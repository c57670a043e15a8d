// Chapter 10, head dims above 128, backward: a block that owns 64 keys, and dK and dV of them. wide/backward.cu says
// what its consumers do.
#pragma once

#include <cstdint>

#include "attention/schedule.h"
#include "backward_blocks.h"
#include "device/bulk_copy.h"
#include "device/ring.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/watch.h"
#include "maps.h"

namespace hopper::wide {

template <class T, int D>
struct KeysShared {
  T k[rows * D], v[rows * D];                // each tile in D / 64 pages of 128 bytes a row, swizzled
  T q[2][rows * D], d_o[2][rows * D];        // two tiles, as all that follows
  float4 p[2][rows / 8][warpgroup_threads];  // fragments of P^T
  float stats[2][2 * rows];                  // LSE, then delta
  Mbarrier kv_full, full[2], empty[2], p_full[2], p_empty[2];
};

template <class T, int D>
__device__ void init(KeysShared<T, D>& smem) {
  mbarrier_init(&smem.kv_full, 1);
  for (int i = 0; i < 2; i++) {
    mbarrier_init(&smem.full[i], 1);
    mbarrier_init(&smem.empty[i], 4 * consumers);  // their warps
    mbarrier_init(&smem.p_full[i], 4);
    mbarrier_init(&smem.p_empty[i], 4);
  }
}

// Starts the copies of a block. One thread.
template <class T, int D>
__device__ __forceinline__ void load(KeysShared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const TensorMap& d_o_map, const Problem& p,
                                     const float* stats, attention::KeyTile work, int kv_head) {
  constexpr int stats_bytes = 2 * rows * sizeof(float);
  mbarrier_arrive_expect_tx(&smem.kv_full, 2 * rows * D * sizeof(T));
  load_tile(smem.k, k_map, &smem.kv_full, work.j0, kv_head, p.kv_heads);
  load_tile(smem.v, v_map, &smem.kv_full, work.j0, kv_head, p.kv_heads);
  Ring<2> ring;
#pragma unroll 1
  for (int head = work.first_head; head < work.first_head + work.heads; head++)
#pragma unroll 1
    for (int i = work.start; i < work.head_tiles; i++, ring.advance()) {
      mbarrier_wait(&smem.empty[ring.place], ring.parity ^ 1);
      Mbarrier* full = &smem.full[ring.place];
      mbarrier_arrive_expect_tx(full, 2 * rows * D * sizeof(T) + stats_bytes);
      load_tile(smem.q[ring.place], q_map, full, i * rows, head, p.heads);
      load_tile(smem.d_o[ring.place], d_o_map, full, i * rows, head, p.heads);
      bulk_load(smem.stats[ring.place], stats + (size_t(head) * work.head_tiles + i) * 2 * rows, stats_bytes, full);
    }
}

// A consumer's gradient of the block's 64 keys: dV if it makes P, else dK.
template <bool makes_p, class T, int D>
__device__ __forceinline__ void differentiate_keys(KeysShared<T, D>& smem, const Problem& p, attention::KeyTile work,
                                                   int shares, float* parts, const attention::View<T>& out) {
  const int warp_key = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0) * 16;  // the first of the warp's 16 keys
  const int thread = threadIdx.x % warpgroup_threads;
  T* const own_rows = makes_p ? smem.k : smem.v;
  const int head_tiles = work.head_tiles - work.start, tiles = head_tiles > 0 ? work.heads * head_tiles : 0;

  float x_reg[1][rows / 8][4], sum_reg[1][D / 8][4] = {};
  uint32_t x_half[1][rows / 16][4];  // P^T or dS^T, as A fragments
  Ring<2> ring;
  // P^T or dS^T of tile `i` in the place of S^T or dP^T
  const auto make = [&](int i) {
    const float* stats = smem.stats[ring.place];
    float4(*p_tile)[warpgroup_threads] = smem.p[ring.place];
    if constexpr (makes_p) {
      watch_step("2. P = exp(S - LSE)");
      make_p<rows>(x_reg, p.scale, stats,
                   [&](int query) { return p.visible_keys(i * rows + query) - work.j0 - warp_key; });
      mbarrier_wait(&smem.p_empty[ring.place], ring.parity ^ 1);
#pragma unroll
      for (int n = 0; n < rows / 8; n++) p_tile[n][thread] = fragments_of(x_reg)(0, n);
      arrive_warp(smem.p_full[ring.place]);
    } else {
      watch_step("2. dS = P (dP - delta)");
      mbarrier_wait(&smem.p_full[ring.place], ring.parity);
      make_ds<rows>(
          x_reg, [&](int, int n) { return p_tile[n][thread]; }, stats + rows);
      arrive_warp(smem.p_empty[ring.place]);
    }
  };
  const auto start_x = [&] {
    start_product<rows, D, rows>(x_reg, own_rows, makes_p ? smem.q[ring.place] : smem.d_o[ring.place]);
  };
  const auto start_gradient = [&](int place) {
    start_sum<D, rows>(sum_reg, x_half, makes_p ? smem.d_o[place] : smem.q[place]);
  };

  mbarrier_wait(&smem.kv_full, 0);
  if (tiles > 0) {
    if (makes_p)
      watch_step("1. S = Q K^T");
    else
      watch_step("1. dP = dO V^T");
    mbarrier_wait(&smem.full[ring.place], ring.parity);
    wgmma_fence();
    start_x();
    wgmma_wait<0>(x_reg);
    make(work.start);
    swizzled_tile::round_fragments<T, rows>(x_half, x_reg);
    int i = work.start;
#pragma unroll 1
    for (int n = 1; n < tiles; n++) {
      if (makes_p)
        watch_step("1. S = Q K^T; beside it dV += P^T dO of the tile before");
      else
        watch_step("1. dP = dO V^T; beside it dK += dS^T Q of the tile before");
      const Ring<2> before = ring;
      ring.advance();
      i = i + 1 < work.head_tiles ? i + 1 : work.start;  // the first tile of the next head
      mbarrier_wait(&smem.full[ring.place], ring.parity);
      wgmma_fence();
      start_x();
      start_gradient(before.place);
      wgmma_wait<1>(x_reg);
      make(i);
      wgmma_wait<0>(sum_reg, x_half);
      arrive_warp(smem.empty[before.place]);
      swizzled_tile::round_fragments<T, rows>(x_half, x_reg);
    }
    if (makes_p)
      watch_step("3. dV += P^T dO");
    else
      watch_step("3. dK += dS^T Q");
    wgmma_fence();
    start_gradient(ring.place);
    wgmma_wait<0>(sum_reg);
  }

  watch_step("dK and dV leave");
  const float factor = makes_p ? 1 / p_factor : p.scale;
  const int rows_left = p.seq_k - work.j0 - warp_key;
  const size_t row = size_t(work.kv_head) * p.seq_k + work.j0 + warp_key;  // over all shares
  watch(makes_p ? "dV" : "dK", {int64_t(work.kv_head / shares) * p.seq_k + work.j0 + warp_key, 0, rows_left, D},
        sum_reg, factor);
  if (shares == 1)
    swizzled_tile::store_rows<rows, D>(out.at_row(out.of_head(work.kv_head, p.kv_heads), work.j0 + warp_key),
                                       own_rows + warp_key * page_row, sum_reg, factor, rows_left, out.stride());
  else
    store_fp32<D>(parts + (makes_p ? 0 : size_t(p.batch) * p.kv_heads * shares * p.seq_k * D) + row * D, sum_reg,
                  factor, rows_left);
}

}  // namespace hopper::wide
