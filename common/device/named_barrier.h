// Barriers among some of a block's warps. PTX ISA, "bar". A block has sixteen, by number; number 0 is __syncthreads().
//
// When `threads` threads have come to a barrier, all threads that wait at it go on, and it is ready for its next use.
// `threads` counts whole warps (a multiple of 32), and all threads that come give the same number. What a thread has
// written to shared memory before it came is seen by the threads that waited.
#pragma once

#include "device/cuda.h"

// Comes and waits for the others.
#ifdef WORKBOOK_SIMT
inline void named_barrier_sync(int barrier, int threads, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) {
  simt::named_barrier("bar.sync", barrier, threads, true, file, line);
}
#else
__device__ inline void named_barrier_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
#endif

// Arrives without waiting: for producers of what the others wait for. Before a producer may arrive again, something
// else must have told it that they have gone on.
#ifdef WORKBOOK_SIMT
inline void named_barrier_arrive(int barrier, int threads, const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) {
  simt::named_barrier("bar.arrive", barrier, threads, false, file, line);
}
#else
__device__ inline void named_barrier_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
#endif
