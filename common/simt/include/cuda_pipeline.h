// The primitives of cp.async under CUDA's names.
#pragma once

#include <cuda_runtime.h>

__device__ inline void __pipeline_memcpy_async(void* shared, const void* global, std::size_t bytes,
                                               std::size_t zeros = 0) {
  simt::cp_async(shared, global, bytes, bytes - zeros);
}
__device__ inline void __pipeline_commit() { simt::cp_async_commit(); }
__device__ inline void __pipeline_wait_prior(int pending, const char* file = __builtin_FILE(),
                                             int line = __builtin_LINE()) {
  simt::cp_async_wait(pending, file, line);
}
