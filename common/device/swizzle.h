// Where the numbers of a tile lie in shared memory so that banks never conflict. Chapter 06, 2_swizzle.cu, is about it.
//
// A tile [rows][D] of 16-bit numbers is D / 64 pages, each [rows][64]: a row of a page is 128 bytes, across all 32
// banks. Chunk c (8 numbers, 16 bytes) of row r lies in place c ^ (r % 8) of its page, so that the same chunk of eight
// rows (ldmatrix), and eight chunks of one row (cp.async), are in different banks. A pointer to row 8 n of a tile, or
// to its page, is a tile again.
#pragma once

#include "device/cuda.h"

namespace swizzled_tile {

constexpr int page_row = 64;  // elements of a row of a page: from one row of a tile to the next

// Where chunk `chunk` of row `row` begins, in elements.
template <int rows>
__device__ int position(int row, int chunk) {
  return (chunk / 8 * rows + row) * page_row + (chunk ^ row) % 8 * 8;
}

// The XOR swizzle of a whole fragment: 16 * step columns, or 2 * step chunks, to the right of a position of chunk 0 or
// 1: an xor with a constant, or an immediate. Why an xor, with c for the chunk to start from, 0 or 1, and d = 2 * (step
// % 4), which is 0, 2, 4 or 6:
//
//   the chunk in its page is   c + d           = c ^ d              because c and d have no bit in common
//   it lies in place           (c ^ d) ^ r % 8 = (c ^ r % 8) ^ d    because the order of xors does not matter
//   or, 8 elements a place,    8 * (c ^ r % 8) ^ 8 * d
//
// in row r. 8 * (c ^ r % 8) are bits 3 to 5 of `position`, and 8 * d = 16 * (step % 4) changes no other bits. With
// every fourth step the next page begins.
template <int rows>
__device__ int right_of(int position, int step) {
  return (position ^ 16 * (step % 4)) + step / 4 * rows * page_row;
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

}  // namespace swizzled_tile
