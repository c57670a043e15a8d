// Chapter 10, head dims above 128, backward: a block that owns 128 queries, and dQ of them. wide/backward.cu says what
// its consumers do.
#pragma once

#include <cmath>
#include <cstdint>

#include "attention/schedule.h"
#include "backward_blocks.h"
#include "device/bulk_copy.h"
#include "device/math.h"
#include "device/ring.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/watch.h"
#include "maps.h"

namespace hopper::wide {

template <class T, int D>
struct QueriesShared {
  static constexpr int v_places = D > 192 ? 1 : 2;
  T q[consumers][rows * D], d_o[consumers][rows * D];  // q: later dQ
  T k[2][rows * D], v[v_places][rows * D];
  Mbarrier own_full, k_full[2], k_empty[2], v_full[v_places], v_empty[v_places];
};

template <class T, int D>
__device__ void init(QueriesShared<T, D>& smem) {
  mbarrier_init(&smem.own_full, 1);
  for (int i = 0; i < 2; i++) {
    mbarrier_init(&smem.k_full[i], 1);
    mbarrier_init(&smem.k_empty[i], 4 * consumers);  // their warps
  }
  for (int i = 0; i < QueriesShared<T, D>::v_places; i++) {
    mbarrier_init(&smem.v_full[i], 1);
    mbarrier_init(&smem.v_empty[i], 4 * consumers);
  }
}

// Starts the copies of a block. One thread.
template <class T, int D>
__device__ __forceinline__ void load(QueriesShared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const TensorMap& d_o_map, const Problem& p,
                                     attention::Tile tile) {
  constexpr int tile_bytes = rows * D * sizeof(T);
  mbarrier_arrive_expect_tx(&smem.own_full, 2 * consumers * tile_bytes);
  for (int consumer = 0; consumer < consumers; consumer++) {
    load_tile(smem.q[consumer], q_map, &smem.own_full, tile.i0 + consumer * rows, tile.head, p.heads);
    load_tile(smem.d_o[consumer], d_o_map, &smem.own_full, tile.i0 + consumer * rows, tile.head, p.heads);
  }
  const int tiles = attention::key_tiles<rows>(p, tile.i0 + consumers * rows - 1), kv_head = p.kv_head(tile.head);
  Ring<2> k;
  Ring<QueriesShared<T, D>::v_places> v;
#pragma unroll 1
  for (int j = 0; j < tiles; j++, k.advance(), v.advance()) {
    mbarrier_wait(&smem.k_empty[k.place], k.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.k_full[k.place], tile_bytes);
    load_tile(smem.k[k.place], k_map, &smem.k_full[k.place], j * rows, kv_head, p.kv_heads);
    mbarrier_wait(&smem.v_empty[v.place], v.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.v_full[v.place], tile_bytes);
    load_tile(smem.v[v.place], v_map, &smem.v_full[v.place], j * rows, kv_head, p.kv_heads);
  }
}

// A consumer's 64 queries.
template <class T, int D>
__device__ __forceinline__ void differentiate_queries(QueriesShared<T, D>& smem, const Problem& p, attention::Tile tile,
                                                      const float* stats, const attention::View<T>& dq) {
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 queries
  const int first_row = tile.i0 + warp_row, tiles = attention::key_tiles<rows>(p, tile.i0 + consumers * rows - 1);
  T* const q_rows = smem.q[consumer];
  const float scale_log2 = p.scale * log2_e;

  float lse[2] = {}, row_sum[2] = {};  // of rows 8 h + g
  const float* of_tile = stats + (size_t(tile.head) * ceil_div(p.seq_q, rows) + first_row / rows) * 2 * rows;
  for (int h = 0; h < 2; h++)
    if (first_row + 8 * h + g < p.seq_q) {
      lse[h] = of_tile[first_row % rows + 8 * h + g];
      row_sum[h] = of_tile[rows + first_row % rows + 8 * h + g];
    }

  float p_reg[1][rows / 8][4], ds_reg[1][rows / 8][4], dq_reg[1][D / 8][4] = {};
  uint32_t ds_half[1][rows / 16][4];
  Ring<2> k;
  Ring<QueriesShared<T, D>::v_places> v;
  mbarrier_wait(&smem.own_full, 0);
#pragma unroll 1
  for (int j = 0; j < tiles; j++, k.advance(), v.advance()) {
    watch_step("1. S = Q K^T, dP = dO V^T");
    mbarrier_wait(&smem.k_full[k.place], k.parity);
    mbarrier_wait(&smem.v_full[v.place], v.parity);
    wgmma_fence();
    start_product<rows, D, rows>(p_reg, q_rows, smem.k[k.place]);
    start_product<rows, D, rows>(ds_reg, smem.d_o[consumer], smem.v[v.place]);
    wgmma_wait<1>(p_reg);

    watch_step("2. P = exp(S - LSE), dS = P (dP - delta)");
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int visible = p.visible_keys(first_row + 8 * h + g) - j * rows - 2 * t;
#pragma unroll
      for (int n = 0; n < rows / 8; n++)
        for (int c = 0; c < 2; c++) {
          const float x = fmaf(p_reg[0][n][2 * h + c], scale_log2, -lse[h]);
          p_reg[0][n][2 * h + c] = exp2_approx(8 * n + c >= visible ? -INFINITY : x);
        }
    }
    wgmma_wait<0>(ds_reg);
    arrive_warp(smem.v_empty[v.place]);
#pragma unroll
    for (int n = 0; n < rows / 8; n++)
      for (int r = 0; r < 4; r++)
        ds_reg[0][n][r] = p_reg[0][n][r] * fmaf(ds_reg[0][n][r], 1 / p_factor, -row_sum[r / 2]);
    swizzled_tile::round_fragments<T, rows>(ds_half, ds_reg);

    watch_step("3. dQ += dS K");
    wgmma_fence();
    start_sum<D, rows>(dq_reg, ds_half, smem.k[k.place]);
    wgmma_wait<0>(dq_reg);
    arrive_warp(smem.k_empty[k.place]);
  }

  watch("dQ", {int64_t(tile.head) * p.seq_q + first_row, 0, p.seq_q - first_row, D}, dq_reg, p.scale);
  swizzled_tile::store_rows<rows, D>(dq.at_row(dq.of_head(tile.head, p.heads), first_row),
                                     q_rows + warp_row % rows * page_row, dq_reg, p.scale, p.seq_q - first_row,
                                     dq.stride());
}

}  // namespace hopper::wide
