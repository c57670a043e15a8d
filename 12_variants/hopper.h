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

// A head's place in a batch, and the batch.
struct HeadOfBatch {
  int head, batch;
  __device__ HeadOfBatch(int of_all, int heads) : head(of_all % heads), batch(of_all / heads) {}
};

// Of a tensor [B, H, N, D] as its strides say, in boxes of `box_rows` rows of one page of 64 columns.
template <int box_rows, class T>
TensorMap tile_map(const Problem& p, const View<T>& of, int heads, int rows) {
  // The stride of a dimension of one element means nothing, but must be one.
  const auto bytes = [](unsigned pieces) { return std::max<int64_t>(1, pieces) * 16; };
  return tensor_map(of.data, {p.head_dim, rows, heads, p.batch}, {bytes(of.row), bytes(of.head), bytes(of.batch)},
                    {64, box_rows, 1, 1});
}

// Starts the copy of a tile [rows][D] that begins with row `first` of a head. One thread.
template <int D, int rows, class T>
__device__ __forceinline__ void load_tile(T* to, const TensorMap& map, Mbarrier* full, int first,
                                          const HeadOfBatch& of) {
#pragma unroll
  for (int page = 0; page < D / 64; page++)
    tensor_load(to + page * rows * 64, map, full, page * 64, first, of.head, of.batch);
}
template <int D, int rows, class T>
__device__ __forceinline__ void store_tile(const TensorMap& map, const T* from, int first, const HeadOfBatch& of) {
#pragma unroll
  for (int page = 0; page < D / 64; page++)
    tensor_store(map, from + page * rows * 64, page * 64, first, of.head, of.batch);
}

// Whether the device has the instructions, and a map can have these strides: not if elements share a place, as those of
// a tensor that was expanded.
inline bool takes(const Problem& p, std::initializer_list<attention::Strides> of_queries,
                  std::initializer_list<attention::Strides> of_keys) {
  const auto fit = [&](const attention::Strides& s, int heads, int rows) {
    return (s.batch > 0 || p.batch == 1) && (s.head > 0 || heads == 1) && (s.row > 0 || rows == 1);
  };
  if (p.packed) return false;
  if (p.views) {
    for (const attention::Strides& s : of_queries)
      if (!fit(s, p.heads, p.seq_q)) return false;
    for (const attention::Strides& s : of_keys)
      if (!fit(s, p.kv_heads, p.seq_k)) return false;
  }
  return attention::not_for_hopper(p).empty();
}
inline bool takes(const Problem& p, const attention::ForwardArgs& args) {
  return takes(p, {args.q_strides, args.o_strides}, {args.k_strides, args.v_strides});
}
inline bool takes(const Problem& p, const attention::BackwardArgs& args) {
  return takes(p, {args.q_strides, args.d_o_strides, args.dq_strides},
               {args.k_strides, args.v_strides, args.dk_strides, args.dv_strides});
}

template <class X>
void run_forward(const Problem& p, const attention::ForwardArgs& args, cudaStream_t stream);
template <class X>
void run_backward(const Problem& p, const attention::BackwardArgs& args, cudaStream_t stream);

// What run_backward takes: tiles of 128 queries at D = 64 and of 64 at D = 128, and of each two parts of dQ.
constexpr int query_rows(int D) { return 128 * 64 / D; }
constexpr int dq_parts = 2;
inline size_t backward_workspace(const Problem& p) {
  return attention::BackwardWorkspace::bytes(p, query_rows(p.head_dim <= 64 ? 64 : 128), dq_parts);
}

}  // namespace variants::on_hopper
