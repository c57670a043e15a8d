// Barriers among some of a block's warps. PTX ISA, "bar". A block has sixteen, by number; number 0 is __syncthreads().
//
// A barrier lets go when `threads` threads have come to it, all who wait at once, and is then ready for its next use.
// `threads` counts whole warps (a multiple of 32), the same for everyone who comes. Writes to shared memory that went
// before a thread's coming are seen by those who wait.
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
