// PTX names shared memory by 32-bit addresses of its own; C++ has 64-bit generic pointers to it. On the engine too, the
// first 1024 bytes are not the kernel's: dynamic shared memory begins behind them.
#pragma once

#include <cstdint>

#include "device/cuda.h"

#if defined(__CUDACC__)
__device__ inline uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}
#elif defined(WORKBOOK_SIMT)
inline uint32_t shared_address(const void* shared) { return simt::shared_address(shared); }
#endif
