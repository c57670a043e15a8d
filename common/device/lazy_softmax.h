// The softmax of a tile of scores, with lazy rescaling, on the fragments of a warp: x[b][n] is a C fragment of
// device/mma.h with rows 16 b to 16 b + 15 and keys 8 n to 8 n + 7. Chapter 06, 6_lazy.cu, is about it, and chapter 08,
// 2_earlystop.cu, about the order of its parts:
//
//   if (x = subtract_max(S, rows, ..), some x > headroom)  a vote of the warp, hidden keys included
//   hide(x, ..)                                            only where a row of the warp does not see all keys
//   raise(x, O, rows)                                      only after that vote: m rises, l and O follow: raise_max()
//                                                          and rescale(), where O follows later
//   exponentiate(P, x, rows)                               P = 2^x, and l
//
// raise() and exponentiate() show the correction and P, where they are told what the rows and the tile are (watch.h).
#pragma once

#include <cmath>
#include <cstdint>

#include "device/cuda.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace lazy_softmax {

// `headroom` is what FlashAttention-4 calls the threshold of rescaling: how large x may become before m rises and O is
// rescaled. `start` is the x of the row maximum when m is set. P = 2^x is 2^15 at most, and fp16 reaches 65504. Below
// 2^-14 fp16 loses bits; that is why x does not start at 0: a key that is 2^21 times lighter than the heaviest still
// has all of its bits. l and O are fp32, which is as precise at any size.
constexpr float start = 7, headroom = 15;

// These two for P of 16 bits, and for a P that shall be at most 1: then m is the row maximum so far.
struct SixteenBits {
  static constexpr float start = lazy_softmax::start, headroom = lazy_softmax::headroom;
};
struct AtMostOne {
  static constexpr float start = 0, headroom = 0;
};

// Of rows 16 b + 8 h + g: m, in base 2, and -l, which is inf until m is set. l only over this lane's columns.
template <int blocks, class Range = SixteenBits>
struct Rows {
  float m[blocks][2], minus_l[blocks][2];

  __device__ Rows() {
    for (int b = 0; b < blocks; b++)
      for (int h = 0; h < 2; h++) m[b][h] = 0, minus_l[b][h] = INFINITY;
  }

  // l over all columns. Every lane of a quad gets it.
  __device__ float l(int b, int h) const {
    const float minus_sum = quad_sum(minus_l[b][h]);
    return minus_sum > 0 ? 0 : -minus_sum;  // 0: the row has seen no key
  }
};

// x = scale log2(e) S - m, in place of S. True for the whole warp if a row needs another m: an x is above the headroom,
// or no m is set. From 0 up, floats are in the order of their bits, and the largest of three integers is a single
// instruction of sm_90.
template <int blocks, int columns, class Range>
__device__ __forceinline__ bool subtract_max(float (&x)[blocks][columns][4], const Rows<blocks, Range>& rows,
                                             float scale_log2) {
  int top = 0;
#pragma unroll
  for (int b = 0; b < blocks; b++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int largest = __float_as_int(rows.minus_l[b][h]);
#pragma unroll
      for (int n = 0; n < columns; n++) {
        float* pair = x[b][n] + 2 * h;
        for (int c = 0; c < 2; c++) pair[c] = fmaf(pair[c], scale_log2, -rows.m[b][h]);
        largest = max(max(largest, __float_as_int(pair[0])), __float_as_int(pair[1]));
      }
      top = max(top, largest);
    }
  return __any_sync(0xffffffff, top > __float_as_int(Range::headroom));
}

// x of a key that its row does not see becomes -inf. visible_keys(i) is how many of these keys row i of the warp sees.
template <int blocks, int columns, class VisibleKeys>
__device__ __forceinline__ void hide(float (&x)[blocks][columns][4], VisibleKeys visible_keys) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int b = 0; b < blocks; b++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int visible = visible_keys(16 * b + 8 * h + g) - 2 * t;
#pragma unroll
      for (int n = 0; n < columns; n++)
        for (int c = 0; c < 2; c++)
          if (8 * n + c >= visible) x[b][n][2 * h + c] = -INFINITY;
    }
}

// m rises where it has to, until the largest x of the row is `start`, and l follows. What O has to be multiplied by.
template <int blocks, int columns, class Range>
__device__ __forceinline__ void raise_max(float (&x)[blocks][columns][4], Rows<blocks, Range>& rows,
                                          float (&correction)[blocks][2], Watched state = {}) {
#pragma unroll
  for (int b = 0; b < blocks; b++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float top = -INFINITY;  // the row maximum
#pragma unroll
      for (int n = 0; n < columns; n++) top = fmaxf(top, fmaxf(x[b][n][2 * h], x[b][n][2 * h + 1]));
      top = quad_max(top);
      const bool sets = rows.minus_l[b][h] > 0 && top > -INFINITY;  // m for the first time, up or down
      const float rise = sets || top > Range::headroom ? top - Range::start : 0;
      correction[b][h] = rise > 0 ? exp2_approx(-rise) : 1;
      watch("correction", state, 16 * b + 8 * h + threadIdx.x % 32 / 4, 0, correction[b][h]);
      rows.m[b][h] += rise;
      rows.minus_l[b][h] = sets ? 0 : rows.minus_l[b][h] * correction[b][h];
#pragma unroll
      for (int n = 0; n < columns; n++)
        for (int c = 0; c < 2; c++) x[b][n][2 * h + c] -= rise;
    }
}

template <int blocks, int columns>
__device__ __forceinline__ void rescale(float (&o)[blocks][columns][4], const float (&correction)[blocks][2]) {
#pragma unroll
  for (int b = 0; b < blocks; b++)
#pragma unroll
    for (int n = 0; n < columns; n++)
      for (int r = 0; r < 4; r++) o[b][n][r] *= correction[b][r / 2];
}

// m rises where it has to; l and O follow.
template <int blocks, int columns, int o_columns, class Range>
__device__ __forceinline__ void raise(float (&x)[blocks][columns][4], float (&o)[blocks][o_columns][4],
                                      Rows<blocks, Range>& rows, Watched state = {}) {
  float correction[blocks][2];
  raise_max(x, rows, correction, state);
  rescale(o, correction);
}

// P = 2^x as A fragments: two C fragments of x, side by side, are one.
template <class T, int blocks, int columns>
__device__ __forceinline__ void exponentiate(uint32_t (&p)[blocks][columns / 2][4],
                                             const float (&x)[blocks][columns][4], Rows<blocks>& rows,
                                             [[maybe_unused]] Watched tile = {}) {
#pragma unroll
  for (int b = 0; b < blocks; b++)
#pragma unroll
    for (int step = 0; step < columns / 2; step++)
#pragma unroll
      for (int r = 0; r < 4; r++) {
        const float* neighbours = x[b][2 * step + r / 2] + r % 2 * 2;
        const float p0 = exp2_approx(neighbours[0]), p1 = exp2_approx(neighbours[1]);
        watch_pair("P", tile, b, step, r, p0, p1);
        rows.minus_l[b][r % 2] -= p0 + p1;
        p[b][step][r] = pack2<T>(p0, p1);
      }
}

// Which pairs of x the polynomial gets, of a column of fragments and the rows h of it: every eighth.
__device__ constexpr bool by_polynomial(int n, int h) { return n % 4 == 3 && n / 4 % 2 != h; }

// P = 2^x in place of x, in fp32, and l: for where the registers of P's fragments are still read by a product. With the
// polynomial, FMA instructions make some pairs, and the exp unit the others.
template <bool polynomial = false, int blocks, int columns>
__device__ __forceinline__ void exponentiate_in_place(float (&x)[blocks][columns][4], Rows<blocks>& rows,
                                                      Watched tile = {}) {
#pragma unroll
  for (int b = 0; b < blocks; b++)
#pragma unroll
    for (int n = 0; n < columns; n++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float* pair = x[b][n] + 2 * h;
        const bool by_fma = polynomial && by_polynomial(n, h);
        for (int c = 0; c < 2; c++) pair[c] = by_fma ? exp2_polynomial(pair[c]) : exp2_approx(pair[c]);
        rows.minus_l[b][h] -= pair[0] + pair[1];
      }
  watch("P", tile, x);
}

// l becomes NaN if an x is of which the polynomial would make 0; then O and LSE do. After raise_max(), which makes NaN
// of an x that is inf, and only where subtract_max() says that m has to rise: that sees NaN as above the headroom.
template <int blocks, int columns>
__device__ __forceinline__ void keep_nan(const float (&x)[blocks][columns][4], Rows<blocks>& rows) {
#pragma unroll
  for (int b = 0; b < blocks; b++)
#pragma unroll
    for (int n = 0; n < columns; n++)
      for (int r = 0; r < 4; r++)
        if (by_polynomial(n, r / 2) && isnan(x[b][n][r])) rows.minus_l[b][r / 2] = x[b][n][r];
}

// Shows m and l, and O, as they are when a tile is done.
template <int blocks, class Range>
__device__ __forceinline__ void watch_rows(Watched state, const Rows<blocks, Range>& rows) {
  watch_rows("m base 2", state, rows.m);
  watch_row_shares("-l", state, rows.minus_l);
}
template <int blocks, int columns, class Range>
__device__ __forceinline__ void watch_rows(Watched state, const Rows<blocks, Range>& rows,
                                           const float (&o)[blocks][columns][4]) {
  watch_rows(state, rows);
  watch("O", state, o);
}

}  // namespace lazy_softmax
