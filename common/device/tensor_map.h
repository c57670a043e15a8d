// Tensor maps: what the hardware that copies has to know of a tensor in global memory. CUDA driver API,
// "cuTensorMapEncodeTiled". Compute capability 9.0 and later.
//
// The host makes one and passes it to a kernel by value, as `const __grid_constant__ TensorMap`. Copies with it
// (device/bulk_copy.h) move boxes. The innermost dimension of a box is 128 bytes at most and becomes a row of 128 bytes
// in shared memory, whose 16-byte chunks are swizzled as in device/swizzle.h: chunk c of row r lies in place c ^ (r %
// 8). What of a box is outside the tensor is read as zeros and not written. But of a box that is outside as a whole an
// H200 reads where the tensor begins, so memory has to be there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/cuda.h"

#ifdef WORKBOOK_SIMT
using TensorMap = simt::TensorMap;
#else
struct alignas(128) TensorMap {
  unsigned char opaque[128];  // the driver's CUtensorMap, without its header
};
#endif

// Rows of a box may be 64 bytes as well, two of them side by side in 128: then chunk c of row r lies in place c ^ (r /
// 2 % 4). Throws CudaError if the hardware cannot do this.
enum class TensorElement { fp16, bf16, fp32, fp8 };
TensorMap make_tensor_map(TensorElement element, int rank, const void* data, const int64_t* sizes,
                          const int64_t* strides, const int* box);

// Of a tensor of 2 to 5 dimensions, the innermost first: its size in elements, the strides of all dimensions but the
// innermost in bytes (multiples of 16), and the size of a box in elements (at most 256 each). A matrix [N, D] in boxes
// of 32 rows of 64 columns:
//
//   tensor_map(Q, {D, N}, {2 * D}, {64, 32})
template <class T, size_t rank>
TensorMap tensor_map(const T* data, const int64_t (&sizes)[rank], const int64_t (&strides)[rank - 1],
                     const int (&box)[rank]) {
  static_assert(rank >= 2 && rank <= 5);
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, float> ||
                sizeof(T) == 1);
  const TensorElement element = std::is_same_v<T, __half>          ? TensorElement::fp16
                                : std::is_same_v<T, __nv_bfloat16> ? TensorElement::bf16
                                : std::is_same_v<T, float>         ? TensorElement::fp32
                                                                   : TensorElement::fp8;
  return make_tensor_map(element, int(rank), data, sizes, strides, box);
}

// Of matrices [matrices, rows, D] as tiles: in boxes of box_rows rows of pages, 64 columns each (device/swizzle.h).
// Each page has as many of the head_dim columns as the others; if they are fewer than 64, zeros fill the page up, and
// from a page that is stored they are left out.
template <int D, class T>
TensorMap tile_map(const T* data, int matrices, int rows, int box_rows, int head_dim = D, int box_pages = D / 64) {
  constexpr int pages = D / 64;
  const int columns = head_dim / pages, row_bytes = head_dim * sizeof(T);
  return tensor_map(data, {columns, rows, pages, matrices},
                    {row_bytes, int64_t(columns * sizeof(T)), int64_t(row_bytes) * rows}, {64, box_rows, box_pages, 1});
}
