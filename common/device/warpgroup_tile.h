// The two products of attention on a warpgroup (wgmma), for 64 rows of the result. Chapter 10, 2_descriptors.cu,
// is about them. A tile in shared memory is D / 64 pages of 64 columns: a row of a page is row_bytes, and swizzled
// (device/swizzle.h). An instruction takes 16 elements of the inner dimension, `step` counts them.
//
// Numbers of eight bits have half as many bytes: a page has 128 columns, and an instruction takes 32 elements. With
// fewer than 128 columns a tile is one page, with rows of 64 bytes.
//
// All of these start the product and commit it as a group; wgmma_wait() waits for it.
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

// Of a tile whose rows run along the inner index, `length` of it: the bytes of a row of a page, and where the 32 bytes
// of a step begin in a tile of `rows`.
template <int length, class T>
constexpr int bytes_of_row = length* int(sizeof(T)) < row_bytes ? length* int(sizeof(T)) : row_bytes;
template <int rows, int length, class T>
__device__ constexpr int step_begin(int step) {
  constexpr int row = bytes_of_row<length, T>, steps = row / step_bytes;
  return step / steps * rows * row + step % steps * step_bytes;
}
template <int length, class T>
__device__ __forceinline__ uint64_t descriptor_of_rows(const T* tile) {
  constexpr int row = bytes_of_row<length, T>;
  return wgmma_descriptor(tile, 0, 8 * row, row);
}

// product = A B^T.
template <int a_rows, int D, int columns, class T>
__device__ __forceinline__ void start_product(float (&product)[1][columns / 8][4],
                                              const T* a,  // [64][D] in a tile of a_rows
                                              const T* b)  // [columns][D]
{
  const uint64_t a_tile = descriptor_of_rows<D>(a), b_tile = descriptor_of_rows<D>(b);
#pragma unroll
  for (int step = 0; step < D * int(sizeof(T)) / step_bytes; step++)
    wgmma<T>(product[0], wgmma_advance(a_tile, step_begin<a_rows, D, T>(step)),
             wgmma_advance(b_tile, step_begin<columns, D, T>(step)), step > 0);
  wgmma_commit();
}

// sum += A B^T, with A from registers; or sum = A B^T.
template <int D, int depth, class T, int steps>
__device__ __forceinline__ void start_sum_by_transpose(float (&sum)[1][D / 8][4], const uint32_t (&a)[1][steps][4],
                                                       const T* b,  // [D][depth]
                                                       bool accumulate = true) {
  static_assert(steps == depth * int(sizeof(T)) / step_bytes);
  const uint64_t b_tile = descriptor_of_rows<depth>(b);
#pragma unroll
  for (int step = 0; step < steps; step++)
    wgmma<T>(sum[0], a[0][step], wgmma_advance(b_tile, step_begin<D, depth, T>(step)), accumulate || step > 0);
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
