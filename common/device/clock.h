// Clocks that a kernel can read. clock64() is CUDA's own: clock cycles of the multiprocessor on a GPU, nanoseconds on
// the SIMT engine.
#pragma once

#include "device/cuda.h"

// Nanoseconds. PTX ISA, "%globaltimer". It does not say how often this clock advances: time no less than some hundred
// microseconds with it.
__device__ inline long long nanoseconds() {
#ifdef WORKBOOK_SIMT
  return clock64();
#else
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#endif
}
