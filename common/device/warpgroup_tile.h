// The two products of attention on a warpgroup (wgmma), for 64 rows of the result. Chapter 10, 2_descriptors.cu,
// is about them. A tile in shared memory is D / 64 pages of 64 columns: a row of a page is row_bytes, and swizzled
// (device/swizzle.h). An instruction takes 16 elements of the inner dimension, `step` counts them.
//
// Both start the product and commit it as a group; wgmma_wait() waits for it.
#pragma once

#include <cstdint>

#include "device/cuda.h"
#include "device/swizzle.h"
#include "device/wgmma.h"

namespace warpgroup_tile {

using swizzled_tile::page_row;

constexpr int row_bytes = 128;                     // of a page: 64 elements of 16 bits, across all 32 banks
constexpr int step_bytes = 32, steps_in_page = 4;  // 16 elements along a row
constexpr int step_rows_bytes = 16 * row_bytes;    // 16 elements down a column

// product = A B^T.
template <int a_rows, int D, int columns, class T>
__device__ __forceinline__ void start_product(float (&product)[1][columns / 8][4],
                                              const T* a,  // [64][D] in a tile of a_rows
                                              const T* b)  // [columns][D]
{
  const uint64_t a_tile = wgmma_descriptor(a), b_tile = wgmma_descriptor(b);
#pragma unroll
  for (int step = 0; step < D / 16; step++) {
    const int page = step / steps_in_page, at = step % steps_in_page * step_bytes;
    wgmma<T>(product[0], wgmma_advance(a_tile, page * a_rows * row_bytes + at),
             wgmma_advance(b_tile, page * columns * row_bytes + at), step > 0);
  }
  wgmma_commit();
}

// sum += A B, with A from registers.
template <int D, int depth, class T>
__device__ __forceinline__ void start_sum(float (&sum)[1][D / 8][4], const uint32_t (&a)[1][depth / 16][4],
                                          const T* b)  // [depth][D]
{
  const uint64_t b_tile = wgmma_descriptor(b, depth * row_bytes);
#pragma unroll
  for (int step = 0; step < depth / 16; step++)
    wgmma<T, Major::mn>(sum[0], a[0][step], wgmma_advance(b_tile, step * step_rows_bytes), true);
  wgmma_commit();
}

}  // namespace warpgroup_tile
