// Numbers that a kernel shows to whoever replays it (./workbook walk). On a GPU a call is no instruction at all.
//
// An element has a name, a row, counted over all heads as in LSE [B, H, Nq], and a column. What a step leaves there is
// shown: from one barrier of the block, or one wait of its warps at an mbarrier, to the next. Everything is inlined, so
// that the line that is named is the kernel's.
#pragma once

#include <cstdint>

#include "device/cuda.h"

// From here on a thread does this step of the algorithm, until it names another one: watch_step("S = Q K^T"). The steps
// of a walk begin there, too.
__device__ __forceinline__ void watch_step([[maybe_unused]] const char* name) {
#ifdef WORKBOOK_SIMT
  simt::watch_step(name);
#endif
}

// Where a matrix begins of which a kernel has a part, and how much of it there is: what lies beyond the last row or
// column is not shown.
struct Watched {
  int64_t row;
  int column, rows, columns;
};

// Element [i][j] of it.
__device__ __forceinline__ void watch([[maybe_unused]] const char* name, [[maybe_unused]] Watched at,
                                      [[maybe_unused]] int i, [[maybe_unused]] int j, [[maybe_unused]] float value) {
#ifdef WORKBOOK_SIMT
  if (i < at.rows && j < at.columns) simt::watch(name, at.row + i, at.column + j, value, false);
#endif
}

// The same of an element in memory, where it is looked up without being counted as an access.
__device__ __forceinline__ void watch([[maybe_unused]] const char* name, [[maybe_unused]] Watched at,
                                      [[maybe_unused]] int i, [[maybe_unused]] int j,
                                      [[maybe_unused]] const float* from) {
#ifdef WORKBOOK_SIMT
  if (i < at.rows && j < at.columns) watch(name, at, i, j, simt::peek(from));
#endif
}

// Elements [i][j] to [i][j + 3], each times the factor.
__device__ __forceinline__ void watch(const char* name, Watched at, int i, int j, float4 values, float factor = 1) {
  watch(name, at, i, j, factor * values.x);
  watch(name, at, i, j + 1, factor * values.y);
  watch(name, at, i, j + 2, factor * values.z);
  watch(name, at, i, j + 3, factor * values.w);
}

// Element [i][j] of sums of which each of several threads has a share: the shares are added up.
__device__ __forceinline__ void watch_share([[maybe_unused]] const char* name, [[maybe_unused]] Watched at,
                                            [[maybe_unused]] int i, [[maybe_unused]] int j,
                                            [[maybe_unused]] float share) {
#ifdef WORKBOOK_SIMT
  if (i < at.rows && j < at.columns) simt::watch(name, at.row + i, at.column + j, share, true);
#endif
}

// Number r of fragment [b][n] of a matrix in the accumulators of mma: of rows 16 b to 16 b + 15, columns 8 n to 8 n
// + 7.
__device__ __forceinline__ void watch_one([[maybe_unused]] const char* name, [[maybe_unused]] Watched at,
                                          [[maybe_unused]] int b, [[maybe_unused]] int n, [[maybe_unused]] int r,
                                          [[maybe_unused]] float value) {
#ifdef WORKBOOK_SIMT
  watch(name, at, 16 * b + r / 2 * 8 + threadIdx.x % 32 / 4, 8 * n + threadIdx.x % 4 * 2 + r % 2, value);
#endif
}

// The two numbers in register r of fragment [b][step] of a matrix that is A of mma: rows as above, columns 16 step to
// 16 step + 15.
__device__ __forceinline__ void watch_pair(const char* name, Watched at, int b, int step, int r, float first,
                                           float second) {
  watch_one(name, at, b, 2 * step + r / 2, r % 2 * 2, first);
  watch_one(name, at, b, 2 * step + r / 2, r % 2 * 2 + 1, second);
}

// A matrix in the accumulators of mma: fragment [b][n] has rows 16 b to 16 b + 15 and columns 8 n to 8 n + 7.
template <int blocks, int fragments>
__device__ __forceinline__ void watch([[maybe_unused]] const char* name, [[maybe_unused]] Watched at,
                                      [[maybe_unused]] const float (&x)[blocks][fragments][4],
                                      [[maybe_unused]] float factor = 1) {
#ifdef WORKBOOK_SIMT
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int b = 0; b < blocks; ++b)
    for (int n = 0; n < fragments; ++n)
      for (int r = 0; r < 4; ++r) {
        const int i = 16 * b + r / 2 * 8 + g, j = 8 * n + 2 * t + r % 2;
        watch(name, at, i, j, factor * x[b][n][r]);
      }
#endif
}

// The same of a warp that has one block of 16 rows.
template <int fragments>
__device__ __forceinline__ void watch([[maybe_unused]] const char* name, [[maybe_unused]] Watched at,
                                      [[maybe_unused]] const float (&x)[fragments][4],
                                      [[maybe_unused]] float factor = 1) {
#ifdef WORKBOOK_SIMT
  watch(name, at, reinterpret_cast<const float(&)[1][fragments][4]>(x), factor);
#endif
}

// The same of a matrix whose transpose is shown: the fragments' rows are columns.
template <int blocks, int fragments>
__device__ __forceinline__ void watch_transpose([[maybe_unused]] const char* name, [[maybe_unused]] Watched at,
                                                [[maybe_unused]] const float (&x)[blocks][fragments][4],
                                                [[maybe_unused]] float factor = 1) {
#ifdef WORKBOOK_SIMT
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int b = 0; b < blocks; ++b)
    for (int n = 0; n < fragments; ++n)
      for (int r = 0; r < 4; ++r) {
        const int i = 8 * n + 2 * t + r % 2, j = 16 * b + r / 2 * 8 + g;
        watch(name, at, i, j, factor * x[b][n][r]);
      }
#endif
}

// One number of each of a warp's 16 or 32 rows: x[h] of row 8 h + g, or x[b][h] of row 16 b + 8 h + g. The four lanes
// of a quad have copies.
template <int halves>
__device__ __forceinline__ void watch_rows([[maybe_unused]] const char* name, [[maybe_unused]] Watched at,
                                           [[maybe_unused]] const float (&x)[halves]) {
#ifdef WORKBOOK_SIMT
  for (int h = 0; h < halves; ++h) watch(name, at, 8 * h + threadIdx.x % 32 / 4, 0, x[h]);
#endif
}
template <int blocks>
__device__ __forceinline__ void watch_rows([[maybe_unused]] const char* name, [[maybe_unused]] Watched at,
                                           [[maybe_unused]] const float (&x)[blocks][2]) {
#ifdef WORKBOOK_SIMT
  watch_rows(name, at, reinterpret_cast<const float(&)[2 * blocks]>(x));
#endif
}

// The same where each of the four lanes of a quad has a share.
template <int halves>
__device__ __forceinline__ void watch_row_shares([[maybe_unused]] const char* name, [[maybe_unused]] Watched at,
                                                 [[maybe_unused]] const float (&x)[halves]) {
#ifdef WORKBOOK_SIMT
  for (int h = 0; h < halves; ++h) watch_share(name, at, 8 * h + threadIdx.x % 32 / 4, 0, x[h]);
#endif
}
template <int blocks>
__device__ __forceinline__ void watch_row_shares([[maybe_unused]] const char* name, [[maybe_unused]] Watched at,
                                                 [[maybe_unused]] const float (&x)[blocks][2]) {
#ifdef WORKBOOK_SIMT
  watch_row_shares(name, at, reinterpret_cast<const float(&)[2 * blocks]>(x));
#endif
}
