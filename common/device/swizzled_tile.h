// What a warp does on tensor cores with tiles of matrices in shared memory. device/swizzle.h says how they lie there,
// and the lesson of chapter 06 draws the fragments.
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
#include "device/swizzle.h"

namespace swizzled_tile {

// A thread block of `threads` starts copying a tile to shared memory; rows that do not exist become zeros.
template <int rows, int D, int threads, class T>
__device__ void copy_tile(T* tile,        // [rows][D]
                          const T* from,  // [rows_left, D] in global memory
                          int rows_left) {
  constexpr int rows_per_copy = threads / (D / 8);
  constexpr bool eights = rows_per_copy % 8 == 0;  // then a thread's chunks have the same place in every row
  const int row = threadIdx.x / (D / 8), chunk = threadIdx.x % (D / 8);
  if (eights) tile += position<rows>(row, chunk);
  from += row * D + chunk * 8;
#pragma unroll
  for (int i = 0; i < rows; i += rows_per_copy)
    cp_async_16_or_zero(tile + (eights ? i * page_row : position<rows>(row + i, chunk)), from + i * D,
                        row + i < rows_left);
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
    for (int i = 0; i < blocks; i++)
      ldmatrix_x4(a_reg[i], a + right_of<a_rows>(down_then_right(), step) + i * 16 * page_row);
#pragma unroll
    for (int n = 0; n < columns / 16; n++) {
      uint32_t b_reg[4];
      ldmatrix_x4(b_reg, b + right_of<b_rows>(right_then_down(), step) + n * 16 * page_row);
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
      ldmatrix_x4_trans(b_reg, b + right_of<b_rows>(down_then_right(), n) + step * 16 * page_row);
      for (int i = 0; i < blocks; i++) {
        mma_m16n8k16<T>(sum[i][2 * n], a_reg[i][step], b_reg);
        mma_m16n8k16<T>(sum[i][2 * n + 1], a_reg[i][step], b_reg + 2);
      }
    }
}

// The same with sums that the lanes round to nearest. A tensor core cuts off what does not fit its sum: always towards
// zero, so that over the thousands of tiles of a long row these errors do not cancel. Here it adds up one tile, from
// zero, and the lanes add that.
template <int b_rows, int D, int depth, class T, int blocks>
__device__ void add_product_rounded(float (&sum)[blocks][D / 8][4], const uint32_t (&a_reg)[blocks][depth / 16][4],
                                    const T* b)  // [depth][D] in a tile of b_rows
{
#pragma unroll
  for (int n = 0; n < D / 16; n++) {
    float product[blocks][2][4] = {};
#pragma unroll
    for (int step = 0; step < depth / 16; step++) {
      uint32_t b_reg[4];
      ldmatrix_x4_trans(b_reg, b + right_of<b_rows>(down_then_right(), n) + step * 16 * page_row);
      for (int i = 0; i < blocks; i++) {
        mma_m16n8k16<T>(product[i][0], a_reg[i][step], b_reg);
        mma_m16n8k16<T>(product[i][1], a_reg[i][step], b_reg + 2);
      }
    }
    for (int i = 0; i < blocks; i++)
      for (int c = 0; c < 2; c++)
        for (int r = 0; r < 4; r++) sum[i][2 * n + c][r] += product[i][c][r];
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
      ldmatrix_x4_trans(a_reg[i], a + right_of<rows>(right_then_down(), 2 * a_part + i) + step * 16 * page_row);
#pragma unroll
    for (int n = 0; n < 2; n++) {
      uint32_t b_reg[4];
      ldmatrix_x4_trans(b_reg, b + right_of<rows>(down_then_right(), n == 0 ? b_left : b_right) + step * 16 * page_row);
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
      stmatrix_x4(to + right_of<rows>(down_then_right(), step0 + step) + i * 16 * page_row, a_reg[i][step]);
}

// The transpose of a warp's A fragments to rows of a tile, as columns 16 * step to 16 * step + 15 of these rows.
template <int rows, int columns, class T>
__device__ void store_transpose(T* to,  // [columns][..] in a tile of `rows`
                                const uint32_t (&a_reg)[1][columns / 16][4], int step) {
#pragma unroll
  for (int i = 0; i < columns / 16; i++)
    stmatrix_x4_trans(to + right_of<rows>(right_then_down(), step) + i * 16 * page_row, a_reg[0][i]);
}

// A warp's rows to global memory, by way of rows of a tile that no other warp uses, so that they leave in whole
// rows.
template <int rows, int D, class T, int blocks, class Stride = int>
__device__ void store_rows(T* out,   // [rows_left, D]
                           T* smem,  // [16 * blocks][D] in a tile of `rows`
                           const float (&x)[blocks][D / 8][4], float scale, int rows_left,
                           Stride stride = D) {  // elements from one row to the next
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int i = 0; i < blocks; i++)
    for (int h = 0; h < 2; h++)
      for (int n = 0; n < D / 8; n++)
        *reinterpret_cast<uint32_t*>(smem + position<rows>(g, n) + (16 * i + 8 * h) * page_row + 2 * t) =
            pack2<T>(x[i][n][2 * h] * scale, x[i][n][2 * h + 1] * scale);
  __syncwarp();  // the warp's rows are in shared memory
#pragma unroll
  for (int i = lane; i < 16 * blocks * D / 8; i += 32) {
    const int row = i / (D / 8), chunk = i % (D / 8);
    // With the sum in parentheses nvcc sees that its address is a multiple of 16 bytes, and stores 16 at once.
    if (row < rows_left) store_pack8(out + (row * stride + chunk * 8), load_pack8(smem + position<rows>(row, chunk)));
  }
}

}  // namespace swizzled_tile
