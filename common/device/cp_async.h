// cp.async: copies from global to shared memory that pass no register and run while the thread goes on. PTX ISA,
// "cp.async". Compute capability 8.0 and later.
//
// Each thread starts copies, closes them into a group with cp_async_commit(), and before reading waits until no more
// than N of its latest groups are pending. The wait is for the thread's own copies: what other threads copied is there
// only after a barrier that follows their waits.
#pragma once

#include "device/cuda.h"
#include "device/shared_address.h"

// Starts a copy of 16 bytes; both addresses 16-byte aligned. It bypasses L1 (.cg): a tile is read once by a block.
__device__ inline void cp_async_16(void* shared, const void* global) {
#ifdef WORKBOOK_SIMT
  simt::cp_async(shared, global, 16, 16);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)), "l"(global) : "memory");
#endif
}

// The same, but writes 16 zero bytes and does not read `global` unless `valid`: for rows past the end of a tensor.
__device__ inline void cp_async_16_or_zero(void* shared, const void* global, bool valid) {
#ifdef WORKBOOK_SIMT
  simt::cp_async(shared, global, 16, valid ? 16 : 0);
#else
  const int source_bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(source_bytes)
               : "memory");
#endif
}

// Closes the copies started since the last commit into one group (an empty one counts too).
__device__ inline void cp_async_commit() {
#ifdef WORKBOOK_SIMT
  simt::cp_async_commit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all but the latest PENDING_GROUPS groups of this thread have arrived.
template <int PENDING_GROUPS>
#ifdef WORKBOOK_SIMT
inline void cp_async_wait(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::cp_async_wait(PENDING_GROUPS, file, line);
}
#else
__device__ inline void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING_GROUPS) : "memory");
}
#endif
