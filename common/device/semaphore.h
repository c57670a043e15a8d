// Turns among thread blocks: an int in global memory says whose it is. PTX ISA, "Memory Consistency Model". Compute
// capability 7.0 and later.
//
// What a thread did before give_turn(), and what others did before a barrier that it passed, is seen by who then returns
// from wait_for_turn(), and by those who pass a barrier with it after that. A block may only wait for blocks that are
// certain to run: those that started before it.
#pragma once

#include "device/cuda.h"

// Returns when *semaphore is `turn`.
__device__ inline void wait_for_turn(const int* semaphore, int turn) {
#ifdef WORKBOOK_SIMT
  simt::wait_for_another_block(semaphore, turn);
#else
  int now;
  do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(now) : "l"(semaphore) : "memory");
  while (now != turn);
#endif
}

__device__ inline int peek_turn(const int* semaphore) {
#ifdef WORKBOOK_SIMT
  return __atomic_load_n(semaphore, __ATOMIC_RELAXED);
#else
  int now;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(now) : "l"(semaphore) : "memory");
  return now;
#endif
}

__device__ inline void fence() {
#ifdef WORKBOOK_SIMT
  __threadfence();
#else
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

__device__ inline void set_turn(int* semaphore, int turn) {
#ifdef WORKBOOK_SIMT
  __atomic_store_n(semaphore, turn, __ATOMIC_RELAXED);
#else
  asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(semaphore), "r"(turn) : "memory");
#endif
}

// Sets *semaphore to `turn`.
__device__ inline void give_turn(int* semaphore, int turn) {
#ifdef WORKBOOK_SIMT
  __atomic_store_n(semaphore, turn, __ATOMIC_RELEASE);
#else
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(semaphore), "r"(turn) : "memory");
#endif
}
