// Tiles of Q, K, V or dO in shared memory, and what a warp does with them on the tensor cores. Chapter 06 teaches all
// of it: the fragments in 1_mma, the layout in 2_swizzle, the copies in 3_pipeline, two blocks of 16 rows in 4_rows32.
//
// A tile is [rows][D], D a multiple of 64, 2 bytes an element, aligned to 128 bytes. It lies in D / 64 pages, each
// [rows][64], a row of 128 bytes across all 32 banks. Chunk c (16 bytes) of row r lies in place c ^ (r % 8), so that
// eight rows of one chunk (ldmatrix), and eight chunks of one row (cp.async), are in different banks.
//
// A part of a tile, from row r on (r a multiple of 16), is passed as `tile + r * 64`, and the height of the whole tile
// as a template argument: it says how far apart the pages are. Fragments of a warp (device/mma.h) are
//
//   float c[blocks][columns / 8][4]        C fragments: 16 rows a block, `columns` columns
//   uint32_t a[blocks][columns / 16][4]    A fragments of the same: two C fragments side by side, in pairs
#pragma once

#include <cstdint>

#include "device/cp_async.h"
#include "device/cuda.h"
#include "device/ldmatrix.h"
#include "device/mma.h"
#include "device/numeric.h"
#include "device/stmatrix.h"

// The element at the start of a chunk.
template <int rows>
__device__ inline int position(int row, int chunk) {
  return (chunk / 8 * rows + row) * 64 + (chunk ^ row) % 8 * 8;
}

// 16 * step columns to the right of a position of chunk 0 or 1: an xor with a constant, or an immediate.
template <int rows>
__device__ inline int right_of(int position, int step) {
  return (position ^ 16 * (step % 4)) + step / 4 * rows * 64;
}

// The row of a 16 x 16 block whose address this lane gives to ldmatrix or stmatrix: the four 8 x 8 matrices go down,
// then right (an A fragment; with trans, two B fragments of a tile as it lies), or right, then down (two B fragments of
// a tile's transpose; with trans, an A fragment of it).
__device__ inline int down_then_right() { return position<16>(threadIdx.x % 16, threadIdx.x / 16 % 2); }
__device__ inline int right_then_down() {
  return position<16>(threadIdx.x / 16 % 2 * 8 + threadIdx.x % 8, threadIdx.x / 8 % 2);
}

// Starts copying a tile to shared memory, each of the block's threads its share; rows that do not exist become zeros.
template <int threads, int rows, int D, class T>
__device__ inline void copy_tile(T* tile,        // [rows][D]
                                 const T* from,  // [rows_left, D] in global memory
                                 int rows_left) {
  constexpr int rows_per_copy = threads / (D / 8);
  const int row = threadIdx.x / (D / 8), chunk = threadIdx.x % (D / 8);
  tile += position<rows>(row, chunk);
  from += row * D + chunk * 8;
#pragma unroll
  for (int i = 0; i < rows; i += rows_per_copy) cp_async_16_or_zero(tile + i * 64, from + i * D, row + i < rows_left);
}

// C fragments, rounded to T, as A fragments.
template <class T, int blocks, int steps>
__device__ inline void pack_fragments(uint32_t (&a)[blocks][steps][4], const float (&c)[blocks][2 * steps][4]) {
#pragma unroll
  for (int b = 0; b < blocks; b++)
    for (int step = 0; step < steps; step++)
      for (int r = 0; r < 4; r++) {
        const float* pair = c[b][2 * step + r / 2] + r % 2 * 2;
        a[b][step][r] = pack2<T>(pair[0], pair[1]);
      }
}

// An A fragment from and to 16 rows of a tile, 16 * step columns to the right.
template <int rows, class T>
__device__ inline void load_fragment(uint32_t (&a)[4],
                                     const T* tile,  // [16][..] in a tile of `rows`
                                     int step) {
  ldmatrix_x4(a, tile + right_of<rows>(down_then_right(), step));
}

template <int rows, class T>
__device__ inline void store_fragment(T* tile,  // [16][..] in a tile of `rows`
                                      const uint32_t (&a)[4], int step) {
  stmatrix_x4(tile + right_of<rows>(down_then_right(), step), a);
}

template <int blocks, int n_steps>
__device__ inline void set_to_zero(float (&c)[blocks][n_steps][4]) {
#pragma unroll
  for (int b = 0; b < blocks; b++)
    for (int n = 0; n < n_steps; n++)
      for (int r = 0; r < 4; r++) c[b][n][r] = 0;
}

// C = X Y^T, along D: scores, such as Q K^T.
template <int x_rows, int y_rows, int D, class T, int blocks, int n_steps>
__device__ inline void multiply_by_transpose(float (&c)[blocks][n_steps][4],
                                             const T* x,  // [16 * blocks][D] in a tile of x_rows
                                             const T* y)  // [8 * n_steps][D] in a tile of y_rows
{
  set_to_zero(c);
#pragma unroll
  for (int step = 0; step < D / 16; step++) {
    uint32_t x_reg[blocks][4];
    for (int b = 0; b < blocks; b++) load_fragment<x_rows>(x_reg[b], x + b * 16 * 64, step);
#pragma unroll
    for (int n = 0; n < n_steps; n += 2) {
      uint32_t y_reg[4];
      ldmatrix_x4(y_reg, y + right_of<y_rows>(right_then_down(), step) + n * 8 * 64);
      for (int b = 0; b < blocks; b++) {
        mma_m16n8k16<T>(c[b][n], x_reg[b], y_reg);
        mma_m16n8k16<T>(c[b][n + 1], x_reg[b], y_reg + 2);
      }
    }
  }
}

// C += A Y, along Y's rows: a sum of rows, such as P V.
template <int y_rows, class T, int blocks, int n_steps, int steps>
__device__ inline void add_product(float (&c)[blocks][n_steps][4], const uint32_t (&a)[blocks][steps][4],
                                   const T* y)  // [16 * steps][8 * n_steps] in a tile of y_rows
{
#pragma unroll
  for (int step = 0; step < steps; step++)
#pragma unroll
    for (int n = 0; n < n_steps; n += 2) {
      uint32_t y_reg[4];
      ldmatrix_x4_trans(y_reg, y + right_of<y_rows>(down_then_right(), n / 2) + step * 16 * 64);
      for (int b = 0; b < blocks; b++) {
        mma_m16n8k16<T>(c[b][n], a[b][step], y_reg);
        mma_m16n8k16<T>(c[b][n + 1], a[b][step], y_reg + 2);
      }
    }
}

// C = X^T Y, along the rows that both have, of X's columns from 16 * x_step on and Y's from 16 * y_step on.
template <int rows, class T, int blocks, int n_steps>
__device__ inline void multiply_transpose(float (&c)[blocks][n_steps][4],
                                          const T* x,  // [rows][..]
                                          int x_step,
                                          const T* y,  // [rows][..]
                                          int y_step) {
  set_to_zero(c);
#pragma unroll
  for (int step = 0; step < rows / 16; step++) {
    uint32_t x_reg[blocks][4];
    for (int b = 0; b < blocks; b++)
      ldmatrix_x4_trans(x_reg[b], x + right_of<rows>(right_then_down(), x_step + b) + step * 16 * 64);
#pragma unroll
    for (int n = 0; n < n_steps; n += 2) {
      uint32_t y_reg[4];
      ldmatrix_x4_trans(y_reg, y + right_of<rows>(down_then_right(), y_step + n / 2) + step * 16 * 64);
      for (int b = 0; b < blocks; b++) {
        mma_m16n8k16<T>(c[b][n], x_reg[b], y_reg);
        mma_m16n8k16<T>(c[b][n + 1], x_reg[b], y_reg + 2);
      }
    }
  }
}

// A warp's rows, scaled and rounded to T, to global memory: through rows of a tile that no other warp reads or writes,
// so that they leave in whole rows.
template <int rows, class T, int blocks, int n_steps>
__device__ inline void store_rows(T* out,   // [rows_left, 8 * n_steps] in global memory
                                  T* tile,  // [16 * blocks][8 * n_steps] in a tile of `rows`
                                  const float (&c)[blocks][n_steps][4], float scale, int rows_left) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int b = 0; b < blocks; b++)
    for (int h = 0; h < 2; h++)
      for (int n = 0; n < n_steps; n++)
        *reinterpret_cast<uint32_t*>(tile + position<rows>(g, n) + (16 * b + 8 * h) * 64 + 2 * t) =
            pack2<T>(c[b][n][2 * h] * scale, c[b][n][2 * h + 1] * scale);
  __syncwarp();  // the warp's rows are in shared memory
#pragma unroll
  for (int i = lane; i < 16 * blocks * n_steps; i += 32) {
    const int row = i / n_steps, chunk = i % n_steps;
    if (row < rows_left)
      store_pack8(out + row * 8 * n_steps + chunk * 8, load_pack8(tile + position<rows>(row, chunk)));
  }
}
