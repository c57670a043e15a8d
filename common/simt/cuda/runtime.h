// What C++ has of the CUDA runtime beyond runtime_api.h, as far as the workbook uses it, on the CPU. "Device memory" is
// memory of the engine (see memory.h), streams and events exist, and every call has finished when it returns.
#pragma once

#include <cstddef>

#include "simt/cuda/runtime_api.h"
#include "simt/engine/error.h"

template <class T>
cudaError_t cudaMalloc(T** pointer, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
}

cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags);

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 14,
};

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
template <class... Args>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Args...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
