// Tensors that lie as their strides say, for kernels of problems with views; rows of them are copied to shared memory.
#pragma once

#include "attention/rung.h"
#include "device/cp_async.h"
#include "device/swizzle.h"

namespace attention {

// A tensor [B, H, N, D] that lies as its strides say; only the D elements of a row are contiguous. Places in it are
// counted in pieces of 8 elements, 16 bytes: 32 bits can hold those of 64 GiB, and registers are scarce.
template <class T>
struct View {
  T* data;
  unsigned batch, head, row;  // pieces from one to the next

  // Of row `first` of a head, which is counted over the whole batch; `heads` are those of a batch.
  __device__ unsigned of_head(int index, int heads, int first = 0) const {
    return index / heads * batch + index % heads * head + unsigned(first) * row;
  }
  __device__ T* at(unsigned piece) const { return data + size_t(piece) * 8; }
  __device__ T* at_row(unsigned head, int i) const { return at(head + unsigned(i) * row); }
  __device__ View from_row(int i) const { return {at_row(0, i), batch, head, row}; }
  __device__ size_t stride() const { return size_t(row) * 8; }  // elements from one row to the next
};

// As the caller says, or one row behind the other. A row of V, O, dO and dV has p.v_dim() columns, any other
// p.head_dim.
template <class T, class Pointer>
View<T> view(const Problem& p, Pointer* data, const Strides& given, int heads, int rows, int columns) {
  const Strides strides = p.views ? given : contiguous(p, heads, rows, columns);
  return {static_cast<T*>(data), unsigned(strides.batch / 8), unsigned(strides.head / 8), unsigned(strides.row / 8)};
}

// The tensors of a launch, as T.
template <class T>
struct ForwardViews {
  View<const T> q;  // [B, H, Nq, D]
  View<const T> k;  // [B, Hkv, Nk, D]
  View<const T> v;  // [B, Hkv, Nk, Dv]
  View<T> o;        // [B, H, Nq, Dv]
};
template <class T>
ForwardViews<T> views_of(const Problem& p, const ForwardArgs& args) {
  return {view<const T>(p, args.q, args.q_strides, p.heads, p.seq_q, p.head_dim),
          view<const T>(p, args.k, args.k_strides, p.kv_heads, p.seq_k, p.head_dim),
          view<const T>(p, args.v, args.v_strides, p.kv_heads, p.seq_k, p.v_dim()),
          view<T>(p, args.o, args.o_strides, p.heads, p.seq_q, p.v_dim())};
}

template <class T>
struct BackwardViews {
  View<const T> q, k, v, o, d_o;
  View<T> dq, dk, dv;
};
template <class T>
BackwardViews<T> views_of(const Problem& p, const BackwardArgs& args) {
  return {view<const T>(p, args.q, args.q_strides, p.heads, p.seq_q, p.head_dim),
          view<const T>(p, args.k, args.k_strides, p.kv_heads, p.seq_k, p.head_dim),
          view<const T>(p, args.v, args.v_strides, p.kv_heads, p.seq_k, p.v_dim()),
          view<const T>(p, args.o, args.o_strides, p.heads, p.seq_q, p.v_dim()),
          view<const T>(p, args.d_o, args.d_o_strides, p.heads, p.seq_q, p.v_dim()),
          view<T>(p, args.dq, args.dq_strides, p.heads, p.seq_q, p.head_dim),
          view<T>(p, args.dk, args.dk_strides, p.kv_heads, p.seq_k, p.head_dim),
          view<T>(p, args.dv, args.dv_strides, p.kv_heads, p.seq_k, p.v_dim())};
}
// A thread block of `threads` starts copying rows `first` to `first` + rows - 1 of a head to shared memory; zeros take
// the place of those from `end` on.
template <int rows, int D, int tile_rows, int threads, class T>
__device__ void copy_rows(T* to,  // its first row, in a tile of tile_rows
                          const View<const T>& from, unsigned head, int first, int end) {
  constexpr int columns = threads % (D / 8) == 0 ? D : swizzled_tile::page_row;  // whole rows, or page by page
  constexpr int rows_per_copy = threads / (columns / 8);
  constexpr bool eights = rows_per_copy % 8 == 0;  // then a thread's pieces have the same place in every row
  static_assert(D % columns == 0 && threads % (columns / 8) == 0 && rows % rows_per_copy == 0);
  const int row = threadIdx.x / (columns / 8), piece = threadIdx.x % (columns / 8);
  if (eights) to += swizzled_tile::position<tile_rows>(row, piece);
#pragma unroll
  for (int page = 0; page < D / columns; page++)
#pragma unroll
    for (int i = 0; i < rows; i += rows_per_copy) {
      const int place = (eights ? i * swizzled_tile::page_row : swizzled_tile::position<tile_rows>(row + i, piece)) +
                        page * tile_rows * swizzled_tile::page_row;
      cp_async_16_or_zero(to + place,
                          from.at(head + unsigned(first + row + i) * from.row + page * (columns / 8) + piece),
                          first + row + i < end);
    }
}

}  // namespace attention
