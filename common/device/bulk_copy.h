// Bulk copies: one thread starts a copy of a whole tile or of many bytes, and hardware does the rest. PTX ISA,
// "cp.async.bulk" and "cp.async.bulk.tensor". Compute capability 9.0 and later.
//
// A load, from global to shared memory, tells an mbarrier (device/mbarrier.h) how many bytes have come. Whoever waits
// for the mbarrier's phase sees them. A store or a reduction, from shared to global memory, belongs to the thread that
// started it, which closes its copies into groups and waits for those, as with cp.async: until it has read them
// (bulk_wait_read), the source must not change. The thread may not return before that.
//
// What threads have written to shared memory is stored only if they passed fence_proxy_async() (device/proxy_fence.h).
#pragma once

#include <cstdint>

#include "device/cuda.h"
#include "device/mbarrier.h"
#include "device/shared_address.h"
#include "device/tensor_map.h"

// Where a tile may begin in shared memory, so that its swizzle is that of device/swizzle.h: eight rows of 128 bytes.
constexpr int tile_alignment = 1024;

// The box of the map's tensor that begins at these coordinates (the innermost dimension first, negative ones too) to
// `shared`, a multiple of tile_alignment into shared memory. The innermost coordinate is a multiple of 16 bytes, or the
// GPU stops with an illegal instruction. It always brings the bytes of a whole box: what lies outside the tensor comes
// as zeros.
__device__ __forceinline__ void tensor_load(void* shared, const TensorMap& map, Mbarrier* mbarrier, int c0, int c1) {
#ifdef WORKBOOK_SIMT
  simt::tensor_load(shared, map, &mbarrier->state, {c0, c1, 0, 0}, 2);
#else
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          shared_address(shared)),
      "l"(&map), "r"(shared_address(mbarrier)), "r"(c0), "r"(c1)
      : "memory");
#endif
}

__device__ __forceinline__ void tensor_load(void* shared, const TensorMap& map, Mbarrier* mbarrier, int c0, int c1,
                                            int c2) {
#ifdef WORKBOOK_SIMT
  simt::tensor_load(shared, map, &mbarrier->state, {c0, c1, c2, 0}, 3);
#else
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
          "r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(mbarrier)), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
#endif
}

__device__ __forceinline__ void tensor_load(void* shared, const TensorMap& map, Mbarrier* mbarrier, int c0, int c1,
                                            int c2, int c3) {
#ifdef WORKBOOK_SIMT
  simt::tensor_load(shared, map, &mbarrier->state, {c0, c1, c2, c3}, 4);
#else
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(mbarrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
#endif
}

__device__ __forceinline__ void tensor_load(void* shared, const TensorMap& map, Mbarrier* mbarrier, int c0, int c1,
                                            int c2, int c3, int c4) {
#ifdef WORKBOOK_SIMT
  simt::tensor_load(shared, map, &mbarrier->state, {c0, c1, c2, c3, c4}, 5);
#else
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], "
      "[%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(mbarrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
#endif
}

// The box from shared memory, as tensor_load would have brought it there, to where it belongs in the tensor. It may go
// beyond the tensor's end, but with a negative coordinate the GPU stops with an illegal instruction.
__device__ __forceinline__ void tensor_store(const TensorMap& map, const void* shared, int c0, int c1) {
#ifdef WORKBOOK_SIMT
  simt::tensor_store(map, shared, {c0, c1, 0, 0}, 2);
#else
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
               "r"(shared_address(shared)), "r"(c0), "r"(c1)
               : "memory");
#endif
}

__device__ __forceinline__ void tensor_store(const TensorMap& map, const void* shared, int c0, int c1, int c2) {
#ifdef WORKBOOK_SIMT
  simt::tensor_store(map, shared, {c0, c1, c2, 0}, 3);
#else
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
               "r"(shared_address(shared)), "r"(c0), "r"(c1), "r"(c2)
               : "memory");
#endif
}

__device__ __forceinline__ void tensor_store(const TensorMap& map, const void* shared, int c0, int c1, int c2, int c3) {
#ifdef WORKBOOK_SIMT
  simt::tensor_store(map, shared, {c0, c1, c2, c3}, 4);
#else
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
               "r"(shared_address(shared)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
#endif
}

__device__ __forceinline__ void tensor_store(const TensorMap& map, const void* shared, int c0, int c1, int c2, int c3,
                                             int c4) {
#ifdef WORKBOOK_SIMT
  simt::tensor_store(map, shared, {c0, c1, c2, c3, c4}, 5);
#else
  asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map),
               "r"(shared_address(shared)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
               : "memory");
#endif
}

// Consecutive bytes. Addresses and bytes are multiples of 16.
__device__ __forceinline__ void bulk_load(void* shared, const void* global, int bytes, Mbarrier* mbarrier) {
#ifdef WORKBOOK_SIMT
  simt::bulk_load(shared, global, bytes, &mbarrier->state);
#else
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(global), "r"(bytes), "r"(shared_address(mbarrier))
               : "memory");
#endif
}

// Consecutive bytes of global memory to the L2 cache: a hint. Address and bytes are multiples of 16.
__device__ __forceinline__ void bulk_prefetch([[maybe_unused]] const void* global, [[maybe_unused]] int bytes) {
#ifndef WORKBOOK_SIMT
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
#endif
}

__device__ __forceinline__ void bulk_store(void* global, const void* shared, int bytes) {
#ifdef WORKBOOK_SIMT
  simt::bulk_store(global, shared, bytes);
#else
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(shared_address(shared)),
               "r"(bytes)
               : "memory");
#endif
}

// Adds, each element in one piece, in no particular order among threads and blocks.
__device__ __forceinline__ void bulk_add(float* global, const float* shared, int bytes) {
#ifdef WORKBOOK_SIMT
  simt::bulk_add(global, shared, bytes);
#else
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(global),
               "r"(shared_address(shared)), "r"(bytes)
               : "memory");
#endif
}

// Closes the stores and reductions that this thread has started since the last commit into one group (an empty one
// counts too).
__device__ __forceinline__ void bulk_commit() {
#ifdef WORKBOOK_SIMT
  simt::bulk_commit();
#else
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}

// Waits until all but the latest PENDING_GROUPS groups of this thread are in global memory.
template <int PENDING_GROUPS>
#ifdef WORKBOOK_SIMT
inline void bulk_wait(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::bulk_wait(PENDING_GROUPS, false, file, line);
}
#else
__device__ __forceinline__ void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING_GROUPS) : "memory");
}
#endif

// Waits until all but the latest PENDING_GROUPS groups have been read, so that their source may change.
template <int PENDING_GROUPS>
#ifdef WORKBOOK_SIMT
inline void bulk_wait_read(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::bulk_wait(PENDING_GROUPS, true, file, line);
}
#else
__device__ __forceinline__ void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING_GROUPS) : "memory");
}
#endif
