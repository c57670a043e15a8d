// Sums in global memory that several thread blocks add to. PTX ISA, "red".
#pragma once

#include "device/cuda.h"

// to[4] += x[4], each element in one piece, in no particular order among blocks; `to` 16-byte aligned. The thread does
// not wait for it. One instruction from compute capability 9.0 on, four before.
__device__ inline void atomic_add_4(float* to, const float* x) {
#if defined(WORKBOOK_SIMT)
  simt::registers_read(x, 4);
  simt::atomic_add_4(to, x);
#elif __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
               : "memory");
#else
  for (int i = 0; i < 4; i++) atomicAdd(to + i, x[i]);
#endif
}
