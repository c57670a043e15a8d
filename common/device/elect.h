// elect.sync: one of a warp's lanes, for what one thread does for all. PTX ISA, "elect.sync". Compute capability 9.0
// and later.
//
// All lanes of the warp call it together, and it is true for one of them, always the same. The compiler knows then that
// only one thread goes on, and keeps what it needs in registers that the whole warp shares: `threadIdx.x % 32 == 0`
// says less.
#pragma once

#include <cstdint>

#include "device/cuda.h"

#ifdef WORKBOOK_SIMT
inline bool elect_one(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  bool elected = false;
  simt::warp_collective(
      "elect.sync", 0xffffffff, &elected, [](void* const lanes[32], unsigned) { *static_cast<bool*>(lanes[0]) = true; },
      file, line);
  return elected;
}
#else
__device__ __forceinline__ bool elect_one() {
  uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, elected;\n"
      "}"
      : "=r"(elected));
  return elected != 0;
}
#endif
