// setmaxnreg: a warpgroup gives registers back, and another takes them. PTX ISA, "setmaxnreg". Compute capability 9.0.
//
// All 128 threads of the warpgroup call it together, with the number of registers that each is to have from then on: a
// multiple of 8 from 24 to 256. The block has what its launch gave it: 65536 / threads registers for each thread, in
// multiples of 8 (168 of 384 threads, so that 24 + 240 + 240 fit). Whoever asks for more waits until others have given
// back enough. Registers below the old number keep their values. The kernel needs __launch_bounds__.
#pragma once

#include "device/cuda.h"

// Not more than before.
#ifdef WORKBOOK_SIMT
template <int registers>
inline void setmaxnreg_dec(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0);
  simt::setmaxnreg("setmaxnreg.dec", registers, file, line);
}
#else
template <int registers>
__device__ __forceinline__ void setmaxnreg_dec() {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
#endif

// Not fewer than before.
#ifdef WORKBOOK_SIMT
template <int registers>
inline void setmaxnreg_inc(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0);
  simt::setmaxnreg("setmaxnreg.inc", registers, file, line);
}
#else
template <int registers>
__device__ __forceinline__ void setmaxnreg_inc() {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
#endif
