// mbarrier: a barrier that lies in shared memory and counts two things, arrivals of threads and bytes of asynchronous
// copies. PTX ISA, "mbarrier". Compute capability 9.0 and later.
//
// It goes through phases, 0, 1, 2 and so on. A phase is complete when as many arrivals have come as mbarrier_init()
// said, and all bytes have that the arrivals told it to expect; then the next phase begins, with both counts as at
// first. Bytes may come before anybody expects them: their count is then below zero until somebody does.
//
// A thread waits for a phase by its parity, phase % 2. The wait returns at once if the phase that is under way has the
// other parity. So a new mbarrier lets those pass at once that wait for parity 1 (as if a phase -1 were complete), and
// a thread may be one phase behind, not two. What threads did before they arrived, and what the copies brought, is
// seen by those that have waited.
//
//   phase under way       0        1        2        3
//   wait for parity 0     waits    returns  waits    returns
//   wait for parity 1     returns  waits    returns  waits
#pragma once

#include <cstdint>

#include "device/cuda.h"
#include "device/shared_address.h"

struct alignas(8) Mbarrier {
  uint64_t state;  // PTX's own
};

// One thread makes the mbarrier, and then all other threads learn of it: fence_mbarrier_init(), __syncthreads().
#ifdef WORKBOOK_SIMT
inline void mbarrier_init(Mbarrier* mbarrier, int arrivals, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  simt::mbarrier_init(&mbarrier->state, arrivals, file, line);
}
#else
__device__ __forceinline__ void mbarrier_init(Mbarrier* mbarrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(mbarrier)), "r"(arrivals) : "memory");
}
#endif

// The thread that has made mbarriers shows them to the hardware that copies.
__device__ __forceinline__ void fence_mbarrier_init() {
#ifdef WORKBOOK_SIMT
  simt::fence_mbarrier_init();
#else
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// Arrives, without waiting.
#ifdef WORKBOOK_SIMT
inline void mbarrier_arrive(Mbarrier* mbarrier, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::mbarrier_arrive(&mbarrier->state, 1, 0, file, line);
}
#else
__device__ __forceinline__ void mbarrier_arrive(Mbarrier* mbarrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(mbarrier)) : "memory");
}
#endif

// Arrives, and says how many more bytes this phase has to wait for.
#ifdef WORKBOOK_SIMT
inline void mbarrier_arrive_expect_tx(Mbarrier* mbarrier, int bytes, const char* file = __builtin_FILE(),
                                      int line = __builtin_LINE()) {
  simt::mbarrier_arrive(&mbarrier->state, 1, bytes, file, line);
}
#else
__device__ __forceinline__ void mbarrier_arrive_expect_tx(Mbarrier* mbarrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(mbarrier)), "r"(bytes)
               : "memory");
}
#endif

// Waits for the phase with this parity, 0 or 1. Without NDEBUG it gives up after some seconds, so that a kernel whose
// phases are confused ends, with wrong results, instead of hanging. (It does not trap: around a trap ptxas spills the
// accumulators of wgmma.)
#ifdef WORKBOOK_SIMT
inline void mbarrier_wait(Mbarrier* mbarrier, unsigned parity, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  simt::mbarrier_wait(&mbarrier->state, parity, file, line);
}
#else
__device__ __forceinline__ void mbarrier_wait(Mbarrier* mbarrier, unsigned parity) {
#ifdef NDEBUG
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
      "@!complete bra again;\n"
      "}" ::"r"(shared_address(mbarrier)),
      "r"(parity)
      : "memory");
#else
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      ".reg .u32 tries;\n"
      "mov.u32 tries, 0;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
      "@complete bra done;\n"
      "add.u32 tries, tries, 1;\n"
      "setp.gt.u32 complete, tries, 4000000;\n"
      "@!complete bra again;\n"
      "done:\n"
      "}" ::"r"(shared_address(mbarrier)),
      "r"(parity)
      : "memory");
#endif
}
#endif

// Whether a wait for the phase with this parity would return at once. If so, this was that wait.
#ifdef WORKBOOK_SIMT
inline bool mbarrier_test(Mbarrier* mbarrier, unsigned parity, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  return simt::mbarrier_test(&mbarrier->state, parity, file, line);
}
#else
__device__ __forceinline__ bool mbarrier_test(Mbarrier* mbarrier, unsigned parity) {
  unsigned complete;
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
      "selp.u32 %0, 1, 0, complete;\n"
      "}"
      : "=r"(complete)
      : "r"(shared_address(mbarrier)), "r"(parity)
      : "memory");
  return complete;
}
#endif
