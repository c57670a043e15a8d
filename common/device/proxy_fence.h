// Threads read and write shared memory in one way, bulk copies and wgmma in another: PTX calls these two the generic
// and the async proxy. PTX ISA, "Async proxy". Compute capability 9.0 and later.
//
// What a thread has written is seen by the async proxy only after a fence between the two. The thread that wrote passes
// the fence, before the barrier that tells others that it has written. The other way round no fence is needed: whoever
// has waited for a copy or a product sees it.
#pragma once

#include "device/cuda.h"

#ifdef WORKBOOK_SIMT
inline void fence_proxy_async(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::fence_proxy_async(file, line);
}
inline void fence_proxy_async_global() {}  // the engine has one view of global memory
#else
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// For global memory: after this thread has learned, from a semaphore, that others have written what its bulk copies
// are to read.
__device__ __forceinline__ void fence_proxy_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
#endif
