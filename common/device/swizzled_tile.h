// Tiles of matrices in shared memory whose banks never conflict, and what a warp does with them on tensor cores.
// Chapter 06, 2_swizzle.cu, is about the layout, and its lesson draws the fragments.
//
// A tile [rows][D] of 16-bit numbers is D / 64 pages, each [rows][64]: a row of a page is 128 bytes, across all 32
// banks. Chunk c (8 numbers, 16 bytes) of row r lies in place c ^ (r % 8) of its page, so that eight rows of one chunk
// (ldmatrix), and eight chunks of one row (cp.async), are in different banks. A pointer to row 8 n of a tile, or to its
// page, is a tile again.
//
// A warp has 16 * blocks rows of a product in registers: [blocks][columns / 8][4], C fragments of m16n8k16. Two of
// those side by side, rounded, are an A fragment of the next product: [blocks][columns / 16][4].
#pragma once

#include <cstdint>

#include "device/cp_async.h"
#include "device/cuda.h"
#include "device/ldmatrix.h"
#include "device/mma.h"
#include "device/numeric.h"
#include "device/stmatrix.h"

namespace swizzled_tile {

// Where chunk `chunk` of row `row` begins, in elements.
template <int rows>
__device__ int position(int row, int chunk) {
  return (chunk / 8 * rows + row) * 64 + (chunk ^ row) % 8 * 8;
}

// 16 * step columns, or 2 * step chunks, to the right of a position of chunk 0 or 1: an xor with a constant, or an
// immediate. Why an xor, with c for the chunk to start from, 0 or 1, and d = 2 * (step % 4), which is 0, 2, 4 or 6:
//
//   the chunk in its page is   c + d           = c ^ d              because c and d have no bit in common
//   it lies in place           (c ^ d) ^ r % 8 = (c ^ r % 8) ^ d    because the order of xors does not matter
//   or, 8 elements a place,    8 * (c ^ r % 8) ^ 8 * d
//
// in row r. 8 * (c ^ r % 8) are bits 3 to 5 of `position`, and 8 * d = 16 * (step % 4) changes no other bits. With
// every fourth step the next page begins.
template <int rows>
__device__ int right_of(int position, int step) {
  return (position ^ 16 * (step % 4)) + step / 4 * rows * 64;
}

// The row of a 16 x 16 block whose address this lane gives to ldmatrix or stmatrix. Lanes 0-7 give the eight rows of
// the first 8 x 8 matrix, lanes 8-15 those of the second, and so on. The matrices become registers 0 to 3 in this
// order.
//
//            down, then right                          right, then down
//
//               columns                                   columns
//               0-7          8-15                         0-7          8-15
//             +------------+------------+               +------------+------------+
//   rows 0-7  | lanes 0-7  | lanes 16-23|     rows 0-7  | lanes 0-7  | lanes 8-15 |
//             +------------+------------+               +------------+------------+
//   rows 8-15 | lanes 8-15 | lanes 24-31|     rows 8-15 | lanes 16-23| lanes 24-31|
//             +------------+------------+               +------------+------------+
//
//   an A fragment of the block;               the two B fragments of its transpose (for Q K^T, of K);
//   with trans, its two B fragments (V)       with trans, an A fragment of its transpose
__device__ inline int down_then_right() { return position<16>(threadIdx.x % 16, threadIdx.x / 16 % 2); }
__device__ inline int right_then_down() {
  return position<16>(threadIdx.x / 16 % 2 * 8 + threadIdx.x % 8, threadIdx.x / 8 % 2);
}

// A thread block of `threads` starts copying a tile to shared memory; rows that do not exist become zeros.
template <int rows, int D, int threads, class T>
__device__ void copy_tile(T* tile,        // [rows][D]
                          const T* from,  // [rows_left, D] in global memory
                          int rows_left) {
  constexpr int rows_per_copy = threads / (D / 8);
  const int row = threadIdx.x / (D / 8), chunk = threadIdx.x % (D / 8);
  tile += position<rows>(row, chunk);
  from += row * D + chunk * 8;
#pragma unroll
  for (int i = 0; i < rows; i += rows_per_copy) cp_async_16_or_zero(tile + i * 64, from + i * D, row + i < rows_left);
}

// A B^T of a warp, for 16 * blocks rows of A and `columns` rows of B.
template <int a_rows, int b_rows, int D, int columns, class T, int blocks>
__device__ void multiply_by_transpose(float (&product)[blocks][columns / 8][4],
                                      const T* a,  // [16 * blocks][D] in a tile of a_rows
                                      const T* b)  // [columns][D] in a tile of b_rows
{
#pragma unroll
  for (int i = 0; i < blocks; i++)
    for (int n = 0; n < columns / 8; n++)
      for (int r = 0; r < 4; r++) product[i][n][r] = 0;
#pragma unroll
  for (int step = 0; step < D / 16; step++) {
    uint32_t a_reg[blocks][4];
    for (int i = 0; i < blocks; i++) ldmatrix_x4(a_reg[i], a + right_of<a_rows>(down_then_right(), step) + i * 16 * 64);
#pragma unroll
    for (int n = 0; n < columns / 16; n++) {
      uint32_t b_reg[4];
      ldmatrix_x4(b_reg, b + right_of<b_rows>(right_then_down(), step) + n * 16 * 64);
      for (int i = 0; i < blocks; i++) {
        mma_m16n8k16<T>(product[i][2 * n], a_reg[i], b_reg);
        mma_m16n8k16<T>(product[i][2 * n + 1], a_reg[i], b_reg + 2);
      }
    }
  }
}

// sum += A B of a warp, for 16 * blocks rows of A.
template <int b_rows, int D, int depth, class T, int blocks>
__device__ void add_product(float (&sum)[blocks][D / 8][4], const uint32_t (&a_reg)[blocks][depth / 16][4],
                            const T* b)  // [depth][D] in a tile of b_rows
{
#pragma unroll
  for (int step = 0; step < depth / 16; step++)
#pragma unroll
    for (int n = 0; n < D / 16; n++) {
      uint32_t b_reg[4];
      ldmatrix_x4_trans(b_reg, b + right_of<b_rows>(down_then_right(), n) + step * 16 * 64);
      for (int i = 0; i < blocks; i++) {
        mma_m16n8k16<T>(sum[i][2 * n], a_reg[i][step], b_reg);
        mma_m16n8k16<T>(sum[i][2 * n + 1], a_reg[i][step], b_reg + 2);
      }
    }
}

// A^T B of a warp, for 32 columns of A from 32 * a_part on, and of B for 16 columns from 16 * b_left on and 16 from
// 16 * b_right on.
template <int rows, class T>
__device__ void multiply_transpose(float (&product)[2][4][4], const T* a, int a_part,  // [rows][..]
                                   const T* b, int b_left, int b_right)                // [rows][..]
{
#pragma unroll
  for (int i = 0; i < 2; i++)
    for (int n = 0; n < 4; n++)
      for (int r = 0; r < 4; r++) product[i][n][r] = 0;
#pragma unroll
  for (int step = 0; step < rows / 16; step++) {
    uint32_t a_reg[2][4];
    for (int i = 0; i < 2; i++)
      ldmatrix_x4_trans(a_reg[i], a + right_of<rows>(right_then_down(), 2 * a_part + i) + step * 16 * 64);
#pragma unroll
    for (int n = 0; n < 2; n++) {
      uint32_t b_reg[4];
      ldmatrix_x4_trans(b_reg, b + right_of<rows>(down_then_right(), n == 0 ? b_left : b_right) + step * 16 * 64);
      for (int i = 0; i < 2; i++) {
        mma_m16n8k16<T>(product[i][2 * n], a_reg[i], b_reg);
        mma_m16n8k16<T>(product[i][2 * n + 1], a_reg[i], b_reg + 2);
      }
    }
  }
}

// Rounds a product to the A fragments of the next one.
template <class T, int columns, int blocks>
__device__ void round_fragments(uint32_t (&rounded)[blocks][columns / 16][4],
                                const float (&product)[blocks][columns / 8][4]) {
#pragma unroll
  for (int i = 0; i < blocks; i++)
    for (int step = 0; step < columns / 16; step++)
      for (int r = 0; r < 4; r++) {
        const float* neighbours = product[i][2 * step + r / 2] + r % 2 * 2;
        rounded[i][step][r] = pack2<T>(neighbours[0], neighbours[1]);
      }
}

// A fragments of a warp to rows of a tile, from column 16 * step0 on.
template <int rows, int columns, class T, int blocks>
__device__ void store_fragments(T* to,  // [16 * blocks][..] in a tile of `rows`
                                const uint32_t (&a_reg)[blocks][columns / 16][4], int step0) {
#pragma unroll
  for (int step = 0; step < columns / 16; step++)
    for (int i = 0; i < blocks; i++)
      stmatrix_x4(to + right_of<rows>(down_then_right(), step0 + step) + i * 16 * 64, a_reg[i][step]);
}

// A warp's rows to global memory, by way of rows of a tile that no other warp uses, so that they leave in whole
// rows.
template <int rows, int D, class T, int blocks>
__device__ void store_rows(T* out,   // [rows_left, D]
                           T* smem,  // [16 * blocks][D] in a tile of `rows`
                           const float (&x)[blocks][D / 8][4], float scale, int rows_left) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int i = 0; i < blocks; i++)
    for (int h = 0; h < 2; h++)
      for (int n = 0; n < D / 8; n++)
        *reinterpret_cast<uint32_t*>(smem + position<rows>(g, n) + (16 * i + 8 * h) * 64 + 2 * t) =
            pack2<T>(x[i][n][2 * h] * scale, x[i][n][2 * h + 1] * scale);
  __syncwarp();  // the warp's rows are in shared memory
#pragma unroll
  for (int i = lane; i < 16 * blocks * D / 8; i += 32) {
    const int row = i / (D / 8), chunk = i % (D / 8);
    // With the sum in parentheses nvcc sees that its address is a multiple of 16 bytes, and stores 16 at once.
    if (row < rows_left) store_pack8(out + (row * D + chunk * 8), load_pack8(smem + position<rows>(row, chunk)));
  }
}

}  // namespace swizzled_tile
