// Which problems of this chapter take the loops of chapter 10, and tensors of any strides as tensor maps. The kernels
// themselves are in hopper_forward.h and hopper_backward.h. They are compiled for compute capability 9.0a alone, in
// files of their own: hopper_views.cu and so on, one for each rung.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "attention/backward_workspace.h"
#include "attention/rung.h"
#include "device/bulk_copy.h"
#include "device/tensor_map.h"
#include "extras.h"

namespace variants::on_hopper {

// A head's place in a batch, and the batch. Of packed sequences, where the sequence begins, and how long it is.
struct HeadOfBatch {
  int head, batch;
  int length = 0;
  __device__ HeadOfBatch(int of_all, int heads) : head(of_all % heads), batch(of_all / heads) {}
  __device__ HeadOfBatch(int head, int begin, int length) : head(head), batch(begin), length(length) {}
};

// Of a tensor [B, H, N, D] as its strides say, in boxes of `box_rows` rows of one page of 64 columns.
//
// Of packed tensors [total, H, D] a box must end with its sequence: what is behind must come as zeros, and must not be
// written. A map knows one end of a dimension, and there are many sequences. So the rows have two dimensions, of equal
// strides: the place of a row is the sum of its two coordinates. The first of them has as many values as a box has
// rows. A whole box begins with 0 there, and one of which only `left` rows belong to the sequence with box_rows - left:
// the rows after these are beyond the end of that dimension. The second one, the sum less the first, would be below 0
// then for the first rows of the tensor. So it counts from box_rows rows before the tensor, where no box has a row. But
// of a box that has none at all an H200 reads where the map begins, and perhaps no memory is there: nothing_map is for
// it.
template <int box_rows, class T>
TensorMap tile_map(const Problem& p, const View<T>& of, int heads, int rows, int total) {
  // The stride of a dimension of one element means nothing, but must be one.
  const auto bytes = [](unsigned pieces) { return std::max<int64_t>(1, pieces) * 16; };
  if (p.packed)
    return tensor_map(of.data - box_rows * bytes(of.row) / int64_t(sizeof(T)),
                      {p.head_dim, box_rows, heads, int64_t(total) + box_rows},
                      {bytes(of.row), bytes(of.head), bytes(of.row)}, {64, box_rows, 1, 1});
  return tensor_map(of.data, {p.head_dim, rows, heads, p.batch}, {bytes(of.row), bytes(of.head), bytes(of.batch)},
                    {64, box_rows, 1, 1});
}

// A map of one row, in boxes of `box_rows`: one that begins behind it comes as zeros.
template <int box_rows, class T>
TensorMap nothing_map(const Problem& p, const View<T>& of) {
  return tensor_map(of.data, {p.head_dim, 1, 1, 1}, {16, 16, 16}, {64, box_rows, 1, 1});
}

// The coordinates of a box of `rows` rows in such a map; it begins with row `first` of the head.
struct BoxPlace {
  int row, head, batch;
};
template <class X, int rows>
__device__ BoxPlace box_at(int first, const HeadOfBatch& of) {
  if constexpr (!X::packed) return {first, of.head, of.batch};
  const int row = min(rows, max(0, first + rows - of.length));
  return {row, of.head, of.batch + first + rows - row};
}

// Starts the copy of a tile [rows][D] that begins with row `first` of a head. One thread. Where there is no such row,
// zeros come: of packed sequences by `nothing`, without which a tile must have one.
template <class X, int D, int rows, class T>
__device__ __forceinline__ void load_tile(T* to, const TensorMap& map, Mbarrier* full, int first, const HeadOfBatch& of,
                                          [[maybe_unused]] const TensorMap* nothing = nullptr) {
  const BoxPlace at = box_at<X, rows>(first, of);
  const TensorMap* from = &map;
  if constexpr (X::packed)
    if (nothing && at.row == rows) from = nothing;
#pragma unroll
  for (int page = 0; page < D / 64; page++)
    tensor_load(to + page * rows * 64, *from, full, page * 64, at.row, at.head, at.batch);
}

// Likewise a store, of a box of `rows` rows of a tile that has `tile_rows`.
template <class X, int D, int rows, int tile_rows, class T>
__device__ __forceinline__ void store_tile(const TensorMap& map, const T* from, int first, const HeadOfBatch& of) {
  const BoxPlace at = box_at<X, rows>(first, of);
#pragma unroll
  for (int page = 0; page < D / 64; page++)
    tensor_store(map, from + page * tile_rows * 64, page * 64, at.row, at.head, at.batch);
}

// Whether a map can have these strides: not if elements share a place, as those of a tensor that was expanded.
inline bool fits(const Problem& p, std::initializer_list<attention::Strides> of_queries,
                 std::initializer_list<attention::Strides> of_keys) {
  const auto fit = [&](const attention::Strides& s, int heads, int rows) {
    return (s.batch > 0 || p.batch == 1 || p.packed) && (s.head > 0 || heads == 1) && (s.row > 0 || rows == 1);
  };
  if (p.views) {
    for (const attention::Strides& s : of_queries)
      if (!fit(s, p.heads, p.packed ? p.total_q : p.seq_q)) return false;
    for (const attention::Strides& s : of_keys)
      if (!fit(s, p.kv_heads, p.packed ? p.total_k : p.seq_k)) return false;
  }
  return true;
}
inline bool fits(const Problem& p, const attention::ForwardArgs& args) {
  return fits(p, {args.q_strides, args.o_strides}, {args.k_strides, args.v_strides});
}
inline bool fits(const Problem& p, const attention::BackwardArgs& args) {
  return fits(p, {args.q_strides, args.d_o_strides, args.dq_strides},
              {args.k_strides, args.v_strides, args.dk_strides, args.dv_strides});
}

// And whether the device has the instructions.
template <class Args>
bool takes(const Problem& p, const Args& args) {
  return attention::not_for_hopper(p).empty() && fits(p, args);
}

template <class X>
void run_forward(const Problem& p, const attention::ForwardArgs& args, cudaStream_t stream);
template <class X>
void run_backward(const Problem& p, const attention::BackwardArgs& args, cudaStream_t stream);

// What run_backward takes: tiles of 128 queries at D = 64 and of 64 at D = 128, and of each two parts of dQ and, behind
// all else, further columns.
constexpr int query_rows(int D) { return 128 * 64 / D; }
constexpr int dq_parts = 2;
constexpr size_t columns_bytes(int Br) { return 16 * (Br + 1); }
inline size_t before_columns(const Problem& p, int Br) {
  constexpr size_t alignment = 16;
  return (attention::BackwardWorkspace::bytes(p, Br, dq_parts) + alignment - 1) / alignment * alignment;
}
inline size_t backward_workspace(const Problem& p) {
  const int Br = query_rows(p.head_dim <= 64 ? 64 : 128);
  const size_t q_tiles = size_t(attention::batches(p)) * p.heads * attention::tiles_of_head(p, p.seq_q, p.total_q, Br);
  return before_columns(p, Br) + q_tiles * columns_bytes(Br);
}

}  // namespace variants::on_hopper
