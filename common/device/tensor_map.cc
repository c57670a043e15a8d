#include "device/tensor_map.h"

#include <algorithm>
#include <string>

#include "device/cuda_error.h"
#include "device/launch.h"

#ifndef WORKBOOK_SIMT
#include <cudaTypedefs.h>

#include <cstring>
#endif

namespace {

[[noreturn]] void refuse(const std::string& what) { throw CudaError(cudaErrorInvalidValue, "tensor map: " + what); }

std::string of_dimension(int i, int64_t value) {
  return " of dimension " + std::to_string(i) + " is " + std::to_string(value);
}

#ifndef WORKBOOK_SIMT
// The driver's function, found at run time: nothing here is linked with the driver.
PFN_cuTensorMapEncodeTiled_v12000 find_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
#else
  check(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess)
    refuse("the driver has no cuTensorMapEncodeTiled, which came with CUDA 12.0");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}
#endif

}  // namespace

TensorMap make_tensor_map(TensorElement element, int rank, const void* data, const int64_t* sizes,
                          const int64_t* strides, const int* box) {
  // A launch makes several maps: words are put together for a refusal alone, as they take longer than all the rest.
  const int element_bytes = element == TensorElement::fp32 ? 4 : element == TensorElement::fp8 ? 1 : 2;
  const int row_bytes = box[0] * element_bytes;
  if (reinterpret_cast<uintptr_t>(data) % 16 != 0) refuse("the tensor's address is not a multiple of 16");
  for (int i = 0; i < rank; i++) {
    if (sizes[i] < 1 || sizes[i] > int64_t(1) << 32)
      refuse("the size" + of_dimension(i, sizes[i]) + ": must be 1 to 2^32");
    if (box[i] < 1 || box[i] > 256) refuse("the box" + of_dimension(i, box[i]) + ": must be 1 to 256");
    if (i < rank - 1 && (strides[i] <= 0 || strides[i] % 16 != 0 || strides[i] >= int64_t(1) << 40))
      refuse("the stride" + of_dimension(i + 1, strides[i]) + " bytes: must be a multiple of 16 below 2^40");
  }
  if (row_bytes != 128 && row_bytes != 64)
    refuse("a row of the box is " + std::to_string(row_bytes) + " bytes: must be 128 or 64");
#ifdef WORKBOOK_SIMT
  TensorMap map = {};
  map.data = const_cast<void*>(data);
  map.element_bytes = element_bytes;
  map.rank = rank;
  std::copy_n(sizes, rank, map.sizes);
  std::copy_n(strides, rank - 1, map.strides + 1);
  map.strides[0] = element_bytes;
  std::copy_n(box, rank, map.box);
  return map;
#else
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = find_encode();
  const CUtensorMapDataType types[] = {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                       CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_DATA_TYPE_UINT8};
  cuuint64_t global_sizes[5], global_strides[4];
  cuuint32_t box_sizes[5], steps[5];
  std::copy_n(sizes, rank, global_sizes);
  std::copy_n(strides, rank - 1, global_strides);
  std::copy_n(box, rank, box_sizes);
  std::fill_n(steps, rank, 1);
  CUtensorMap made;
  const auto make = [&] {
    return encode(&made, types[int(element)], cuuint32_t(rank), const_cast<void*>(data), global_sizes, global_strides,
                  box_sizes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  row_bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CUresult result = make();
  if (result == CUDA_ERROR_INVALID_CONTEXT) {  // another library has left this thread without one
    int device = 0;
    check(cudaGetDevice(&device));
    check(cudaSetDevice(device));  // makes the runtime's own current
    result = make();
  }
  if (result != CUDA_SUCCESS) refuse("cuTensorMapEncodeTiled failed with CUresult " + std::to_string(int(result)));
  TensorMap map;
  static_assert(sizeof(map) == sizeof(made) && alignof(TensorMap) >= alignof(CUtensorMap));
  std::memcpy(&map, &made, sizeof(map));
  return map;
#endif
}
