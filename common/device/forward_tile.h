// How a forward on mma.sync copies its tiles, by a thread block of four warps. Chapter 06, 11_final.cu, is about it.
//
// Chunks are 16 bytes, 8 elements (device/swizzle.h). A row of D elements takes D / 8 threads.
#pragma once

#include "device/cp_async.h"
#include "device/cuda.h"
#include "device/swizzle.h"

namespace forward_tile {

using swizzled_tile::page_row;
using swizzled_tile::position;

constexpr int warps = 4, threads = 32 * warps;

template <int D>
constexpr int rows_per_copy = threads / (D / 8);  // rows of D elements that the thread block copies at a time

// Starts copying a tile to shared memory; rows that do not exist become zeros.
template <int D, int rows, class T>
__device__ void copy_tile(T* tile,        // [rows][D] in shared memory, swizzled
                          const T* from,  // [rows_left, D]
                          int rows_left) {
  const int row = threadIdx.x / (D / 8), chunk = threadIdx.x % (D / 8);
#pragma unroll 4
  for (int i = 0; i < rows; i += rows_per_copy<D>)
    cp_async_16_or_zero(tile + position<rows>(row, chunk) + i * page_row, from + (row + i) * D + chunk * 8,
                        row + i < rows_left);
}

// Starts copying Bc rows of K and of V, the keys from j on, to their stage; zeros take the place of those from `end`
// on.
template <int D, int Bc, int stage, class T>
__device__ void copy_ahead(T* to,                   // key j's place in page 0 of K; V is stage * D further on
                           const T* k, const T* v,  // [B * Hkv * Nk, D]
                           unsigned kv_row,         // where key 0 is, over all heads
                           int j, int end) {
  const int row = threadIdx.x / (D / 8), chunk = threadIdx.x % (D / 8), left = end - (j + row);
  to += position<stage>(row, chunk);
  const size_t from = size_t(kv_row + (j + row)) * D + chunk * 8;
#pragma unroll
  for (int i = 0; i < Bc; i += rows_per_copy<D>) {
    cp_async_16_or_zero(to + i * page_row, k + from + i * D, i < left);
    cp_async_16_or_zero(to + stage * D + i * page_row, v + from + i * D, i < left);
  }
  cp_async_commit();
}

}  // namespace forward_tile
