// Chapter 10, head dims above 128: tensor maps of tensors that lie as their strides say, for chapter 12, which has no
// kernels of its own for these head dims.
#pragma once

#include <algorithm>

#include "attention/view.h"
#include "device/bulk_copy.h"
#include "device/tensor_map.h"

namespace hopper::wide {

// Of a tensor [B, H, N, D] as tiles: in boxes of box_rows rows of pages, as tile_map() of device/tensor_map.h has them.
template <int D, class T>
TensorMap map_of(const attention::Problem& p, const attention::View<T>& of, int heads, int rows, int box_rows,
                 int head_dim = D, int box_pages = D / 64) {
  constexpr int pages = D / 64;
  const int columns = head_dim / pages;
  // The stride of a dimension of one element means nothing, but must be one.
  const auto bytes = [](unsigned pieces) { return std::max<int64_t>(1, pieces) * 16; };
  return tensor_map(of.data, {columns, rows, pages, heads, p.batch},
                    {bytes(of.row), int64_t(columns * sizeof(T)), bytes(of.head), bytes(of.batch)},
                    {64, box_rows, box_pages, 1, 1});
}

// Starts the copy of a tile that begins with row `first` of a head, which is counted over the whole batch; `heads` are
// those of a batch. One thread.
template <class T>
__device__ __forceinline__ void load_tile(T* to, const TensorMap& map, Mbarrier* full, int first, int head, int heads) {
  tensor_load(to, map, full, 0, first, 0, head % heads, head / heads);
}

}  // namespace hopper::wide
