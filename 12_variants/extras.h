// What the loops of this chapter take beside a plain problem: forward.h and backward.h, and for Hopper hopper_forward.h
// and hopper_backward.h. A loop is a template over one type, a With<..>, that says at compile time which extras its
// kernel has: a kernel pays for those alone.
#pragma once

#include <cmath>
#include <string>
#include <type_traits>

#include "attention/view.h"
#include "device/math.h"

namespace variants {

using attention::copy_rows;
using attention::Problem;
using attention::view;
using attention::View;

// ---- Score functions -----------------------------------------------------------------------------------------
//
// What becomes of s = q k^T before the softmax, in base 2, since the softmax is: log2(e) * score. A score function may
// depend on the distance from the key to the query's own position, i + Nk - Nq - j, a whole number that it gets as a
// float: from -2^24 to 2^24 that is exact, and no conversion stands in the loop. Its slope is its derivative by
// scale * s, for the backward; it is asked for with the score that has been made, which is mostly all it takes.
// On Hopper something cheaper may take its place in most tiles: a series, or a line.
//
// A third one is a type like these. Name it in a With<..>, give that to run_forward and run_backward as 3_score.cu
// does, and list it in hopper_score.cu.

struct Linear {
  static constexpr bool has_slope = false, has_series = false, has_line = false;  // the slope is 1 everywhere
  float scale_log2;

  __host__ __device__ Linear(const Problem& p, const float*) : scale_log2(p.scale * log2_e) {}
  __device__ Linear of_head(int) const { return *this; }
  __device__ float operator()(float s, float) const { return s * scale_log2; }
  __device__ float slope(float) const { return 1; }
};

// tanh(x) = 1 - 2 / (1 + e^2x), with the errors of two approximate instructions, about 2^-21. It is given 2 log2(e) x.
// (The hardware's own tanh.approx errs by 2^-11: with a cap of 30 that would be 1.5% of P.)
__device__ inline float tanh_from_exp2(float y) { return fmaf(-2, reciprocal_approx(1 + exp2_approx(y)), 1); }

// The same without the special function unit, where |x| is not too large: an odd polynomial in x = in * s with the
// least relative error, 2^-20.5 with its roundings. times * tanh(in * s) is s (c[0] + c[1] s^2 + c[2] s^4 + ..).
template <int terms>
struct TanhSeries {
  float largest;  // |s|; below 0 if powers of `in` leave fp32: then there is no series
  float c[terms];

  __host__ __device__ TanhSeries(float in, float times) : largest(-1) {
    constexpr float range = terms == 3 ? 0.25f : terms == 4 ? 0.5f : 1;  // of x
    constexpr float p[3][6] = {{0.9999996f, -0.33321908f, 0.12841613f},
                               {0.99999946f, -0.33326318f, 0.13190297f, -0.04440223f},
                               {0.9999994f, -0.33329043f, 0.13281438f, -0.05160576f, 0.0167432f, -0.00306709f}};
    static_assert(terms == 3 || terms == 4 || terms == 6);
    if (fabsf(in) > 5e-4f && fabsf(in) < 1e2f) largest = range * fabsf(1 / in);
    float power = times * in;
    for (int i = 0; i < terms; i++, power *= in * in) c[i] = p[terms == 3 ? 0 : terms == 4 ? 1 : 2][i] * power;
  }
  __device__ float less(float s, float m) const {
    const float square = s * s;
    float sum = c[terms - 1];
#pragma unroll
    for (int i = terms - 2; i >= 0; i--) sum = sum * square + c[i];
    return fmaf(sum, s, -m);
  }
};

// softcap * tanh(scale s / softcap): Gemma 2 (2024), section 2.
struct Softcap {
  static constexpr bool has_slope = true, has_series = true, has_line = false;
  float in, cap_log2, per_cap_log2;
  TanhSeries<3> small;   // of the score where it is within a quarter of its cap, as most are
  TanhSeries<6> series;  // where it is within its cap, as nearly all are

  __host__ __device__ Softcap(const Problem& p, const float*)
      : in(p.scale / p.softcap),
        cap_log2(p.softcap * log2_e),
        per_cap_log2(1 / cap_log2),
        small(in, cap_log2),
        series(in, cap_log2) {}
  __device__ Softcap of_head(int) const { return *this; }
  __device__ float operator()(float s, float) const { return cap_log2 * tanh_from_exp2(s * (2 * log2_e * in)); }
  __device__ float slope(float score) const {  // 1 - tanh^2
    const float tanh = score * per_cap_log2;
    return 1 - tanh * tanh;
  }
};

// scale s - per_key * distance: for keys that are all on one side of their queries.
struct Line {
  float scale_log2, per_key;
};

// scale s - slope |distance|: Press et al., "Train Short, Test Long" (2022), section 3.
struct Alibi {
  static constexpr bool has_slope = false, has_series = false, has_line = true;
  float scale_log2, per_key = 0;
  const float* slopes;  // [B, H]

  __host__ __device__ Alibi(const Problem& p, const float* slopes) : scale_log2(p.scale * log2_e), slopes(slopes) {}
  __device__ Alibi of_head(int head) const {
    Alibi own = *this;
    own.per_key = slopes[head] * log2_e;
    return own;
  }
  __device__ float operator()(float s, float distance) const { return s * scale_log2 - per_key * fabsf(distance); }
  __device__ float slope(float) const { return 1; }
  __device__ Line line(bool before) const { return {scale_log2, before ? per_key : -per_key}; }
};

// Each of them, and none, as the problem says when the kernel runs: one kernel in the place of three. No extra is the
// slope of 0.
struct AnyScore {
  static constexpr bool has_slope = true, has_series = true, has_line = true;
  Softcap cap;
  Alibi bias;
  bool capped;

  __host__ __device__ AnyScore(const Problem& p, const float* slopes)
      : cap(p, slopes), bias(p, p.alibi ? slopes : nullptr), capped(p.softcap > 0) {
    if (!capped) cap.per_cap_log2 = 0;
  }
  __device__ AnyScore of_head(int head) const {
    AnyScore own = *this;
    if (bias.slopes) own.bias = bias.of_head(head);
    return own;
  }
  __device__ float operator()(float s, float distance) const { return capped ? cap(s, 0) : bias(s, distance); }
  __device__ float slope(float score) const { return cap.slope(score); }
};

// score(s, own - column) - m. On a line that is two multiply-adds: what does not depend on the column is the row's.
template <class Score>
__device__ __forceinline__ float less(const Score& score, float s, float own, int column, float m) {
  return score(s, own - column) - m;
}
__device__ __forceinline__ float less(const Line& line, float s, float own, int column, float m) {
  return s * line.scale_log2 + (line.per_key * column - (line.per_key * own + m));
}

template <int terms>
__device__ __forceinline__ float less(const TanhSeries<terms>& series, float s, float, int, float m) {
  return series.less(s, m);
}

// f(score function), for all s of a warp, whose distances are from `nearest` to `furthest`. If they are small enough, a
// series takes the function's place; if all keys are on one side, a line. Each way is code and registers: a kernel that
// has both score functions has no `small` series.
template <bool small = true, class Score, int blocks, int columns, class F>
__device__ __forceinline__ auto with_score(const Score& score, const float (&s)[blocks][columns][4], int nearest,
                                           int furthest, F&& f) {
  if constexpr (std::is_same_v<Score, AnyScore>) {
    if (score.capped) return with_score<false>(score.cap, s, nearest, furthest, f);
    return with_score(score.bias, s, nearest, furthest, f);
  }
  if constexpr (Score::has_line && !std::is_same_v<Score, AnyScore>)
    if (nearest >= 0 || furthest <= 0) return f(score.line(nearest >= 0));
  if constexpr (Score::has_series && !std::is_same_v<Score, AnyScore>) {
    float of[4] = {};  // four at a time: one after the other, each waits for the one before
#pragma unroll
    for (int b = 0; b < blocks; b++)
#pragma unroll
      for (int n = 0; n < columns; n++)
        for (int r = 0; r < 4; r++) of[r] = fmaxf(of[r], fabsf(s[b][n][r]));
    const float largest = fmaxf(fmaxf(of[0], of[1]), fmaxf(of[2], of[3]));
    if constexpr (small)
      if (!__any_sync(0xffffffff, largest > score.small.largest)) return f(score.small);
    if (!__any_sync(0xffffffff, largest > score.series.largest)) return f(score.series);
  }
  return f(score);
}

// ---- What a kernel has ---------------------------------------------------------------------------------------

// A sink is no part of it: every forward takes one, since it changes nothing in the loop.
template <bool window_, class Score_, bool packed_ = false>
struct With {
  static constexpr bool window = window_;  // keys begin, too, and do not only end
  static constexpr bool packed = packed_;  // sequences are cut out of their tensors (packed.h)
  static constexpr bool blocks = false;    // tiles are listed (blocks.h)
  using Score = Score_;
};

using Plain = With<false, Linear>;
using Window = With<true, Linear>;
using Capped = With<false, Softcap>;
using WithAlibi = With<false, Alibi>;
using CappedWindow = With<true, Softcap>;
using WindowWithAlibi = With<true, Alibi>;
using Packed = With<false, Linear, true>;
using PackedWithAny = With<true, AnyScore, true>;
struct Listed : Plain {
  static constexpr bool blocks = true;
};

// ---- A V with its own head dim -------------------------------------------------------------------------------

// That of V, O, dO and dV, and the one of Q, K, dQ and dK beside it: the heads of DeepSeek-V2 and V3, whose Q and K
// have 128 columns like V and 64 more that RoPE turns. Kernels have it if their score is a plain one.
constexpr int own_v_dim = 128, own_v_head_dim = 192;

template <class X>
constexpr bool takes_own_v = std::is_same_v<typename X::Score, Linear> && !X::packed && !X::blocks;

// For Pass::unsupported.
inline std::string not_8_to_128_nor_own_v(const Problem& p) {
  if (p.v_dim() == p.head_dim) return attention::head_dim_not_8_to_128(p);
  const auto beside = [](int v, int q_and_k) { return std::to_string(v) + " beside " + std::to_string(q_and_k); };
  if (p.v_dim() != own_v_dim || p.head_dim != own_v_head_dim)
    return "the head dim of V is " + beside(p.v_dim(), p.head_dim) + ": supported are the same as of Q and K, and " +
           beside(own_v_dim, own_v_head_dim);
  if (p.softcap > 0 || p.alibi || p.packed)
    return "the problem has a V with its own head dim and " +
           std::string(p.packed  ? "packed sequences"
                       : p.alibi ? "ALiBi"
                                 : "a softcap") +
           ": supported is one of them alone";
  return "";
}

// ---- Windows -------------------------------------------------------------------------------------------------

// Tiles, of queries or of keys: start <= tile < stop.
struct Tiles {
  int start, stop;
};

// For a kernel with windows the same problem, with a number of keys on both sides: without a mask, and 2^30 for all
// keys. So no thread has to ask which of them there are.
template <class X>
Problem with_both_sides(Problem p) {
  if (!X::window) return p;
  constexpr int all = 1 << 30;
  if (p.mask == attention::Mask::causal) p.window_right = 0;
  if (p.window_left < 0) p.window_left = all;
  if (p.window_right < 0) p.window_right = all;
  p.mask = attention::Mask::none;
  return p;
}

// Problem::keys_of, of such a problem.
template <class X>
__device__ Problem::Span keys_of(const Problem& p, int row) {
  if constexpr (!X::window) return {0, p.visible_keys(row)};
  const int own = row + p.seq_k - p.seq_q;
  return {max(0, own - p.window_left), max(0, min(p.seq_k, own + p.window_right + 1))};
}

// The keys that rows see: begin <= j < end is seen by one of them at least, first <= j < last by all.
struct SeenKeys {
  int begin, end, first, last;
};
template <class X>
__device__ SeenKeys seen_by(const Problem& p, int first_row, int last_row) {
  const Problem::Span of_first = keys_of<X>(p, first_row), of_last = keys_of<X>(p, last_row);
  return {of_first.first, of_last.end, of_last.first, of_first.end};
}

// x of a key that its row does not see becomes -inf, if there is one among these: x[b][n] is a C fragment of
// device/mma.h, with the warp's rows 16 b to 16 b + 15 from first_row on, and keys 8 n to 8 n + 7 from j0 on. `seen` is
// what the warp's rows see.
template <class X, int blocks, int columns>
__device__ __forceinline__ void hide(float (&x)[blocks][columns][4], const Problem& p, const SeenKeys& seen,
                                     int first_row, int j0) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const auto hide_if = [&](auto hidden) {
#pragma unroll
    for (int b = 0; b < blocks; b++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int row = first_row + 16 * b + 8 * h + g;
        const Problem::Span keys = keys_of<X>(p, row);
        const int first = keys.first - j0 - 2 * t, end = keys.end - j0 - 2 * t;
#pragma unroll
        for (int n = 0; n < columns; n++)
          for (int c = 0; c < 2; c++)
            if (hidden(8 * n + c, first, end)) x[b][n][2 * h + c] = -INFINITY;
      }
  };
  if (j0 + 8 * columns > seen.last) hide_if([](int column, int, int end) { return column >= end; });
  if (X::window && j0 < seen.first) hide_if([](int column, int first, int) { return column < first; });
}

// ---- Sinks ---------------------------------------------------------------------------------------------------

// What a row of the forward ends with: LSE, and what its O is multiplied by.
struct RowEnd {
  float lse, factor;
};

// m is in base 2, and l = 0 if the row sees no key. A sink, if there is one, is one more term of the sum, s = sink
// log2(e): the larger of m and s becomes the maximum, so that neither overflows; without a key it is s. O keeps its
// place: it is divided by the new sum, times 2^(m - maximum).
__device__ inline RowEnd end_of_row(float m, float l, const float* sink, int head) {
  float share = 1;
  if (sink) {
    const float s = sink[head] * log2_e, top = l > 0 ? fmaxf(m, s) : s;
    share = l > 0 ? exp2_approx(m - top) : 0;
    l = l * share + exp2_approx(s - top);
    m = top;
  }
  return {(m + log2_approx(l)) * ln_2, l > 0 ? share / l : 0};
}

}  // namespace variants
