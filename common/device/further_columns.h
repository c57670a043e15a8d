// LSE and delta as further columns of the backward's products S^T = K Q^T and dP^T = V dO^T: Q and dO bring -LSE / c
// and -delta, K and V ones, and what is added up is S - LSE / c and dP - delta. Chapter 10, 29_columns_backward.cu, is
// about them.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "device/mma.h"
#include "device/numeric.h"
#include "device/warpgroup_backward.h"

namespace warpgroup_backward {

// Of a tile of Br rows of Q and dO, and whether each thread block of the kernel that made some of them left a number
// out. A bulk copy brings all of it.
template <class T, int Br>
struct FurtherColumns {
  T row[Br][8];  // three parts of -LSE / c, three of -delta, 0, 0
  int left_out[4];

  __device__ bool any_left_out() const {
    const int4 any = *reinterpret_cast<const int4*>(left_out);
    return any.x | any.y | any.z | any.w;
  }
};

// A number is the sum of its parts times these.
constexpr int parts_of_number = 3;
__device__ constexpr float factor_of(int part) {
  return part == 0 ? 32768 : part == 1 ? 16 : part == 2 ? 0.0625f : 0;  // 2^15, 2^4, 2^-4, and of no part
}
constexpr float largest_in_columns = 2e9f;  // that a part 0 of fp16 can be of: 2^15 * 65504 is more

// Makes those of a row. All threads of a thread block, which has rows / 4 of the tile.
template <class T, int rows>
__device__ __forceinline__ void store_columns(FurtherColumns<T, rows>& tile, int row, bool first_lane, float lse_column,
                                              float delta_column) {
  const float numbers[2] = {lse_column, delta_column};
  Pack8<T> pack = {};
  for (int number = 0; number < 2; number++) {
    float rest = fabsf(numbers[number]) <= largest_in_columns ? numbers[number] : 0;
    for (int part = 0; part < parts_of_number; part++) {
      T& column = pack.x[number * parts_of_number + part];
      column = from_float<T>(rest / factor_of(part));
      rest -= to_float(column) * factor_of(part);
    }
  }
  if (first_lane) store_pack8(tile.row[row], pack);
  const bool is_left_out = !(fabsf(numbers[0]) <= largest_in_columns && fabsf(numbers[1]) <= largest_in_columns);
  const int any_is_left_out = __syncthreads_or(is_left_out);
  if (threadIdx.x == 0) tile.left_out[row / (rows / 4)] = any_is_left_out;
}

// Starts product = A B^T + further_a further_b^T. The latter have 16 further columns, of which further_b holds eight.
template <int a_rows, int D, int columns, class T>
__device__ __forceinline__ void start_product_with(float (&product)[1][columns / 8][4], const uint32_t (&further_a)[4],
                                                   const T (&further_b)[columns][8],
                                                   const T* a,  // [64][D] in a tile of a_rows
                                                   const T* b)  // [columns][D]
{
  wgmma<T>(product[0], further_a, wgmma_descriptor(further_b, 0, 8 * 16, 16), false);
  const uint64_t a_tile = descriptor_of_rows<D>(a), b_tile = descriptor_of_rows<D>(b);
#pragma unroll
  for (int step = 0; step < D * int(sizeof(T)) / step_bytes; step++)
    wgmma<T>(product[0], wgmma_advance(a_tile, step_begin<a_rows, D, T>(step)),
             wgmma_advance(b_tile, step_begin<columns, D, T>(step)), true);
  wgmma_commit();
}

// A's fragment of the further columns, whose rows are alike: the factors in columns `first` to `first` + 2 of eight,
// and 0 in all others. It is made anew where it is called, so that no register holds it meanwhile.
template <class T>
__device__ uint32_t factors_from(int first) {
  uint32_t thread = threadIdx.x;
  pin(thread);
  const int part = int(thread % 4) * 2 - first;  // of the first of this lane's two columns
  return pack2<T>(factor_of(part), factor_of(part + 1));
}

// Starts S^T - LSE / c and dP^T - delta.
template <int Bc, int D, int Br, class T>
__device__ __forceinline__ void start_s_and_dp(float (&s)[1][Br / 8][4], float (&dp)[1][Br / 8][4], const T* k,
                                               const T* v,  // [64][D] in tiles of Bc
                                               const T* q, const T* d_o, const FurtherColumns<T, Br>& columns) {
  uint32_t of_lse[4] = {}, of_delta[4] = {};
  of_lse[0] = of_lse[1] = factors_from<T>(0);
  of_delta[0] = of_delta[1] = factors_from<T>(parts_of_number);
  wgmma_fence(of_lse);
  start_product_with<Bc, D, Br>(s, of_lse, columns.row, k, q);
  wgmma_fence(of_delta);
  start_product_with<Bc, D, Br>(dp, of_delta, columns.row, v, d_o);
}

// Subtracts what columns could not hold of `numbers`, each times `factor`: a column should have held the number over
// `divisor`.
template <int queries>
__device__ __forceinline__ void subtract_left_out(float (&x)[1][queries / 8][4], const float* numbers, float divisor,
                                                  float factor) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < queries / 8; n++)
    for (int r = 0; r < 4; r++) {
      const float number = numbers[8 * n + 2 * t + r % 2];
      x[0][n][r] -= fabsf(number / divisor) <= largest_in_columns ? 0 : number * factor;
    }
}

// What dS is multiplied by, until dQ and dK leave. In fp16 it could overflow.
template <class T>
constexpr float ds_factor = std::is_same_v<T, __half> ? 1 : p_factor;

// dS^T, times its factor, in the place of dP^T - delta. `row_sum` is null, unless the columns have left out some delta.
template <class T, int queries>
__device__ __forceinline__ void make_ds_of_columns(float (&x)[1][queries / 8][4], const float (&p)[1][queries / 8][4],
                                                   const float* row_sum) {
  if (row_sum) subtract_left_out<queries>(x, row_sum, 1 / p_factor, p_factor);
#pragma unroll
  for (int n = 0; n < queries / 8; n++)
    for (int r = 0; r < 4; r++) x[0][n][r] *= p[0][n][r] * (ds_factor<T> / p_factor);
}

}  // namespace warpgroup_backward
