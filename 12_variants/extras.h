// What the two loops of this chapter, forward.h and backward.h, take beside a plain problem. A loop is a template over
// one type, a With<..>, that says at compile time which extras its kernel has: a kernel pays for those alone.
#pragma once

#include <cmath>

#include "attention/rung.h"
#include "device/cp_async.h"
#include "device/math.h"
#include "device/swizzle.h"

namespace variants {

using attention::Problem;

// A tensor [B, H, N, D] that lies as its strides say; only the D elements of a row are contiguous. Places in it are
// counted in pieces of 8 elements, 16 bytes: 32 bits can hold those of 64 GiB, and registers are scarce.
template <class T>
struct View {
  T* data;
  unsigned batch, head, row;  // pieces from one to the next

  // Of row 0 of a head, which is counted over the whole batch; `heads` are those of a batch.
  __device__ unsigned of_head(int index, int heads) const { return index / heads * batch + index % heads * head; }
  __device__ T* at(unsigned piece) const { return data + size_t(piece) * 8; }
  __device__ T* at_row(unsigned head, int i) const { return at(head + unsigned(i) * row); }
};

// As the caller says, or one row behind the other.
template <class T, class Pointer>
View<T> view(const Problem& p, Pointer* data, const attention::Strides& given, int heads, int rows) {
  const attention::Strides strides = p.views ? given : attention::contiguous(heads, rows, p.head_dim);
  return {static_cast<T*>(data), unsigned(strides.batch / 8), unsigned(strides.head / 8), unsigned(strides.row / 8)};
}

// A thread block of `threads` starts copying rows `first` to `first` + rows - 1 of a head to shared memory; zeros take
// the place of those from `end` on.
template <int rows, int D, int tile_rows, int threads, class T>
__device__ void copy_rows(T* to,  // its first row, in a tile of tile_rows
                          const View<const T>& from, unsigned head, int first, int end) {
  constexpr int rows_per_copy = threads / (D / 8);
  constexpr bool eights = rows_per_copy % 8 == 0;  // then a thread's pieces have the same place in every row
  const int row = threadIdx.x / (D / 8), piece = threadIdx.x % (D / 8);
  if (eights) to += swizzled_tile::position<tile_rows>(row, piece);
#pragma unroll
  for (int i = 0; i < rows; i += rows_per_copy) {
    const int place = eights ? i * swizzled_tile::page_row : swizzled_tile::position<tile_rows>(row + i, piece);
    cp_async_16_or_zero(to + place, from.at(head + unsigned(first + row + i) * from.row + piece),
                        first + row + i < end);
  }
}

// ---- Score functions -----------------------------------------------------------------------------------------
//
// What becomes of s = q k^T before the softmax, in base 2, since the softmax is: log2(e) * score. A score function may
// depend on the distance from the key to the query's own position, i + Nk - Nq - j. Its slope is its derivative by
// scale * s, for the backward; it is asked for with the score that has been made, which is mostly all it takes.
//
// A third one is a type like these. Name it in a With<..>, and launch forward<T, D, ..> and gradients<T, S, ..> of it.

struct Linear {
  static constexpr bool has_slope = false;  // it is 1 everywhere
  float scale_log2;

  __device__ Linear(const Problem& p, const float*, int) : scale_log2(p.scale * log2_e) {}
  __device__ float operator()(float s, int) const { return s * scale_log2; }
  __device__ float slope(float) const { return 1; }
};

// tanh(x) = 1 - 2 / (1 + e^2x), with the errors of two approximate instructions, about 2^-21. (The hardware's own
// tanh.approx errs by 2^-11: with a cap of 30 that would be 1.5% of P.)
__device__ inline float tanh_from_exp2(float x) { return 1 - 2 * reciprocal_approx(1 + exp2_approx(2 * log2_e * x)); }

// softcap * tanh(scale s / softcap): Gemma 2 (2024), section 2.
struct Softcap {
  static constexpr bool has_slope = true;
  float in, cap_log2, per_cap_log2;

  __device__ Softcap(const Problem& p, const float*, int)
      : in(p.scale / p.softcap), cap_log2(p.softcap * log2_e), per_cap_log2(1 / cap_log2) {}
  __device__ float operator()(float s, int) const { return cap_log2 * tanh_from_exp2(s * in); }
  __device__ float slope(float score) const {  // 1 - tanh^2
    const float tanh = score * per_cap_log2;
    return 1 - tanh * tanh;
  }
};

// scale s - slope |distance|: Press et al., "Train Short, Test Long" (2022), section 3.
struct Alibi {
  static constexpr bool has_slope = false;
  float scale_log2, per_key;

  __device__ Alibi(const Problem& p, const float* slopes, int head)
      : scale_log2(p.scale * log2_e), per_key(slopes[head] * log2_e) {}
  __device__ float operator()(float s, int distance) const { return s * scale_log2 - per_key * float(abs(distance)); }
  __device__ float slope(float) const { return 1; }
};

// ---- What a kernel has ---------------------------------------------------------------------------------------

template <bool window_, class Score_, bool sink_>
struct With {
  static constexpr bool window = window_;  // keys begin, too, and do not only end
  using Score = Score_;
  static constexpr bool sink = sink_;  // forward only: a backward's loop does not change
};

}  // namespace variants
