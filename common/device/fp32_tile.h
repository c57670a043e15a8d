// Tiles of fp32 in shared memory, for products without tensor cores. Chapter 03 is about them.
#pragma once

#include <cstdint>

#include "device/cuda.h"
#include "device/numeric.h"

namespace fp32_tile {

// 16 bytes in one instruction.
__device__ inline float4 load_float4(const float* from) { return *reinterpret_cast<const float4*>(from); }

// Stores n numbers, 16 bytes at a time if there are that many.
template <int n>
__device__ void store_floats(float* to, const float* x) {
  if constexpr (n == 1) *to = *x;
  if constexpr (n == 2) *reinterpret_cast<float2*>(to) = make_float2(x[0], x[1]);
  for (int i = 0; i < n / 4 * 4; i += 4)
    *reinterpret_cast<float4*>(to + i) = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);
}

// Rounds four numbers to T and stores them with one 8-byte instruction.
template <class T>
__device__ void store_rounded(T* to, float4 x) {
  struct alignas(8) Pack4 {
    T x[4];
  } pack = {from_float<T>(x.x), from_float<T>(x.y), from_float<T>(x.z), from_float<T>(x.w)};
  *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(&pack);
}

// A thread block of `threads` copies n_rows x n_columns of a row-major matrix to shared memory, with zeros for what
// lies outside it.
template <int n_rows, int n_columns, int pad, int threads, class T>
__device__ void stage(float* to,      // [n_rows][n_columns + pad]
                      const T* from,  // [rows_left, stride], of which columns_left columns exist
                      int64_t stride, int rows_left, int columns_left) {
  // Eight neighbouring lanes take the same 16 bytes of eight rows: conflict-free stores, whole sectors loaded.
  for (int pack = threadIdx.x; pack < n_rows * n_columns / 8; pack += threads) {
    const int row = pack / n_columns * 8 + pack % 8, column = pack % n_columns / 8 * 8;
    Pack8<T> x = {};
    if (row < rows_left && column < columns_left) x = load_pack8(from + row * stride + column);
    float* out = to + row * (n_columns + pad) + column;
    *reinterpret_cast<float4*>(out) =
        make_float4(to_float(x.x[0]), to_float(x.x[1]), to_float(x.x[2]), to_float(x.x[3]));
    *reinterpret_cast<float4*>(out + 4) =
        make_float4(to_float(x.x[4]), to_float(x.x[5]), to_float(x.x[6]), to_float(x.x[7]));
  }
}

}  // namespace fp32_tile
