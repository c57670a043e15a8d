// What the backwards of chapter 10 have in common. Its 4_warpspec_backward.cu is about them.
#pragma once

#include <cstdint>

#include "attention/problem.h"
#include "device/backward_tile.h"
#include "device/warpgroup_tile.h"
#include "device/watch.h"

namespace warpgroup_backward {

using namespace backward_tile;
using namespace warpgroup_tile;

// Starts a warpgroup's part of dQ^T = K^T dS^T: of 64 columns of K, and of 64 queries. Both are products of what lies
// in shared memory.
template <int Bc, int Br, class T>
__device__ __forceinline__ void start_dq(float (&dq)[1][8][4],
                                         const T* k,   // [Bc][64]
                                         const T* ds)  // [64][Bc] in a tile of Br rows
{
  const uint64_t k_tile = wgmma_descriptor(k), ds_tile = wgmma_descriptor(ds);
#pragma unroll
  for (int step = 0; step < Bc / 16; step++)
    wgmma<T, Major::mn>(
        dq[0], wgmma_advance(k_tile, step * step_rows_bytes),
        wgmma_advance(ds_tile, step / steps_in_page * Br * row_bytes + step % steps_in_page * step_bytes), step > 0);
  wgmma_commit();
}

// P = 0 for keys that a query does not see.
template <int queries, int blocks, class VisibleKeys>
__device__ __forceinline__ void hide_p(float (&x)[blocks][queries / 8][4],
                                       VisibleKeys visible_keys)  // (query): the first one sees the fewest
{
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  if (visible_keys(0) < 16 * blocks) {
#pragma unroll
    for (int n = 0; n < queries / 8; n++)
      for (int e = 0; e < 2; e++) {
        const int visible = visible_keys(8 * n + 2 * t + e) - g;
        for (int b = 0; b < blocks; b++)
          for (int h = 0; h < 2; h++)
            if (16 * b + 8 * h >= visible) x[b][n][2 * h + e] = 0;
      }
  }
}

// make_p(), with the exponentials before the mask: hidden keys get P = 0 where others give them S = -inf. The branch of
// the mask then stands between the exponentials and what follows, and ptxas moves nothing across it. Chapter 10,
// 17_ahead_backward.cu, is about it.
template <int queries, int blocks, class VisibleKeys>
__device__ __forceinline__ void make_p_ahead(float (&x)[blocks][queries / 8][4], float scale,
                                             const float* lse,          // [queries] in shared memory
                                             VisibleKeys visible_keys)  // (query): the first one sees the fewest
{
  const int t = threadIdx.x % 4;
  const float scale_log2 = scale * log2_e;
#pragma unroll
  for (int n = 0; n < queries / 8; n++) {
    const float2 l = *reinterpret_cast<const float2*>(lse + 8 * n + 2 * t);
    for (int b = 0; b < blocks; b++)
      for (int r = 0; r < 4; r++) x[b][n][r] = exp2_approx(fmaf(x[b][n][r], scale_log2, r % 2 ? -l.y : -l.x));
  }
  hide_p<queries>(x, visible_keys);
}

// A warp's 16 rows of dK or dV to global memory, in fp32.
template <int D>
__device__ __forceinline__ void store_fp32(float* to,  // [rows_left, D]
                                           const float (&x)[1][D / 8][4], float factor, int rows_left) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; h++)
    if (8 * h + g < rows_left)
#pragma unroll
      for (int n = 0; n < D / 8; n++)
        *reinterpret_cast<float2*>(to + (8 * h + g) * D + 8 * n + 2 * t) =
            make_float2(x[0][n][2 * h] * factor, x[0][n][2 * h + 1] * factor);
}

// Scales and rounds the sum of the parts of dQ. A thread has two queries of a tile and 16 columns: what the eight lanes
// of one t of a warp have of one fragment.
template <class T, class S>
__device__ void convert_dq_transposed(const attention::Problem& p,
                                      const float4* dq_sum,  // [B * H * tiles][consumers][8 n][4 warps][8 g][4 t]
                                      T* dq)                 // [B, H, Nq, D]
{
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x, tile = thread / 256;
  const int t = thread % 4, warp = thread / 4 % 4, n = thread / 16 % 8, consumer = thread / 128 % 2;
  const unsigned head_tiles = ceil_div(p.seq_q, S::Br), head = tile / head_tiles;
  const int i = tile % head_tiles * S::Br + (S::D == 128 ? 0 : consumer * 64) + 8 * n + 2 * t;
  watch_step("dQ = scale * sum of its parts");
  Pack8<T> rows[2][2];
  for (int g = 0; g < 8; g++) {
    const float4 c = dq_sum[size_t(thread / 4) * 32 + g * 4 + t];
    rows[0][0].x[g] = from_float<T>(c.x * p.scale);
    rows[1][0].x[g] = from_float<T>(c.y * p.scale);
    rows[0][1].x[g] = from_float<T>(c.z * p.scale);
    rows[1][1].x[g] = from_float<T>(c.w * p.scale);
  }
  T* to = dq + (size_t(head) * p.seq_q + i) * S::D + (S::D == 128 ? consumer * 64 : 0) + warp * 16;
  for (int row = 0; row < 2; row++)
    for (int h = 0; h < 2; h++)
      if (i + row < p.seq_q) store_pack8(to + row * S::D + 8 * h, rows[row][h]);
}

}  // namespace warpgroup_backward
