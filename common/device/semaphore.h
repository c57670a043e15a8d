// Turns among thread blocks: an int in global memory says whose it is. PTX ISA, "Memory Consistency Model". Compute
// capability 7.0 and later.
//
// A block may wait only for blocks that are certain to run: those that started before it, those that have taken what it
// waits for while they ran, and in a cooperative launch (device/cooperative_launch.h) all others. If such a block
// writes, then passes a fence, then sets the semaphore, what it wrote is seen by a thread that finds the semaphore set:
// at once if semaphore_wait() found it, after a fence of its own if semaphore_peek() did. What other threads of the
// block wrote before a barrier counts as written by each thread that passed that barrier.
#pragma once

#include "device/cuda.h"

// The semaphore as it is now.
__device__ inline int semaphore_peek(const int* semaphore) {
#ifdef WORKBOOK_SIMT
  return __atomic_load_n(semaphore, __ATOMIC_RELAXED);
#else
  int value;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(semaphore) : "memory");
  return value;
#endif
}

// Returns when the semaphore is `value`.
#ifdef WORKBOOK_SIMT
inline void semaphore_wait(const int* semaphore, int value, const char* file = __builtin_FILE(),
                           int line = __builtin_LINE()) {
  simt::wait_for_value("semaphore_wait", semaphore, value, file, line);
}
#else
__device__ inline void semaphore_wait(const int* semaphore, int value) {
  int now;
  do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(now) : "l"(semaphore) : "memory");
  while (now != value);
}
#endif

__device__ inline void semaphore_set(int* semaphore, int value) {
#ifdef WORKBOOK_SIMT
  __atomic_store_n(semaphore, value, __ATOMIC_RELAXED);
#else
  asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(semaphore), "r"(value) : "memory");
#endif
}

// Orders what came before it, here and in what this thread has seen, before what comes after it, for the whole device.
// __threadfence() does too, and more slowly: it also takes part in one order of all fences.
__device__ inline void fence_acq_rel() {
#ifdef WORKBOOK_SIMT
  __threadfence();
#else
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}
