// Numbers that a kernel shows to whoever replays it (./workbook walk). On a GPU a call is no instruction at all.
//
// An element has a name, a row, counted over all heads as in LSE [B, H, Nq], and a column. What a step, from one
// barrier of the block to the next, leaves there is shown.
#pragma once

#include <cstdint>

#include "device/cuda.h"

__device__ inline void watch([[maybe_unused]] const char* name, [[maybe_unused]] int64_t row,
                             [[maybe_unused]] int column, [[maybe_unused]] float value) {
#ifdef WORKBOOK_SIMT
  simt::watch(name, row, column, value, false);
#endif
}

// The same of four columns.
__device__ inline void watch(const char* name, int64_t row, int column, float4 values) {
  watch(name, row, column, values.x);
  watch(name, row, column + 1, values.y);
  watch(name, row, column + 2, values.z);
  watch(name, row, column + 3, values.w);
}

// For a sum of which each of several threads has a share: the shares are added up.
__device__ inline void watch_share([[maybe_unused]] const char* name, [[maybe_unused]] int64_t row,
                                   [[maybe_unused]] int column, [[maybe_unused]] float share) {
#ifdef WORKBOOK_SIMT
  simt::watch(name, row, column, share, true);
#endif
}
