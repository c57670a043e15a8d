// PTX names shared memory by 32-bit addresses of its own; C++ has 64-bit generic pointers to it.
#pragma once

#include <cstdint>

#include "device/cuda.h"

#ifdef __CUDACC__
__device__ inline uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}
#endif
