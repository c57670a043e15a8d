// The tensor core's matrix product of a warpgroup, four warps: D[64, N] += A[64, 16] B[16, N], fp16 or bf16 in, fp32
// out; or, of the numbers of eight bits in device/fp8.h, D[64, N] += A[64, 32] B[32, N]. PTX ISA, "wgmma.mma_async" and
// "Asynchronous Warpgroup Level Matrix Instructions". Compute capability 9.0, and no other: sm_90a.
//
// The product runs while the threads go on. wgmma_commit() closes those started since the last commit into a group, and
// wgmma_wait<n>() waits until at most n of the latest groups are unfinished. Until then D belongs to the hardware, and
// so does the shared memory that holds A and B. Products with the same D are added up in their order, without a wait.
// All 128 threads execute each of these together. A warpgroup's warps are 4 i to 4 i + 3.
//
// D lies in the registers as C of device/mma.h does: warp w of the warpgroup has rows 16 w to 16 w + 15, and d[n] is
// the fragment of columns 8 n to 8 n + 7. N is 8 times as many, and comes from the array: 64 to 192 in steps of 16,
// or 256. A is in registers, the fragment of device/mma.h of the warp's 16 rows, or in shared memory; B is in shared
// memory.
//
// A matrix in shared memory is a tile that is swizzled as in device/swizzle.h, in pages of 128 bytes by any number of
// rows, which begin at multiples of 1024 bytes. Which way the rows run, its major says:
//
//   Major::k   a row is 64 of the products' inner index: A as [64][k], B as [N][k], like Q and K in Q K^T.
//              The next 16 of k are 32 bytes to the right, and every 64 on the next page.
//   Major::mn  a row is 64 of the rows of A or the columns of B: A as [k][64], B as [k][N], like V in P V.
//              The next 16 of k are 16 rows down, 2048 bytes. The next 64 columns are on the next page.
//
// The descriptor of a matrix has where it begins and two distances:
//
//   bits 0-13    address / 16           bits 32-45   from eight rows to the next eight, / 16: 1024 / 16 = 64
//   bits 16-29   from a page to the next, / 16                         bits 62-63   1, the swizzle of 128 bytes; 2, of
//                                                                                   64; 0, none
//
// From a page to the next is for Major::mn. Without a swizzle a row is 16 bytes, and it is from the 8 of the inner
// index that are there to the next 8: 0, if these are the same ones again.
//
// For V with pages of 80 rows at address 0x8400: 0x8400 / 16 = 0x840; 80 * 128 / 16 = 0x280; the descriptor is
// 0x40000040'02800840. The next 16 rows begin 2048 / 16 = 0x80 further on: 0x40000040'028008c0.
//
// Of eight bits, an instruction takes 32 of the inner index, which are 32 bytes as well. Both matrices are Major::k:
// there is no other form. A row of a page is 128 of the inner index; rows of 64 bytes are swizzled over these (the
// chunks' places are c ^ r / 2 % 4) and eight of them are 512 bytes. D lies as ever, but A in registers has four
// elements to a register, not two: a[r] of a lane are those of row lane / 4 + 8 (r % 2) from 4 (lane % 4) + 16 (r / 2)
// on.
#pragma once

#include <cstdint>

#include "device/cuda.h"
#include "device/fp8.h"
#include "device/shared_address.h"

constexpr int warpgroup_threads = 128;  // four warps
constexpr int wgmma_rows = 64;          // of D, 16 to a warp
enum class Major { k, mn };

// The types that are multiplied. PTX has their names.
enum class WgmmaType { f16, bf16, e4m3, e5m2, none };
template <class T>
constexpr WgmmaType wgmma_type = WgmmaType::none;
template <>
constexpr WgmmaType wgmma_type<__half> = WgmmaType::f16;
template <>
constexpr WgmmaType wgmma_type<__nv_bfloat16> = WgmmaType::bf16;
template <>
constexpr WgmmaType wgmma_type<__nv_fp8_e4m3> = WgmmaType::e4m3;
template <>
constexpr WgmmaType wgmma_type<__nv_fp8_e5m2> = WgmmaType::e5m2;

__device__ __forceinline__ uint64_t wgmma_descriptor(const void* shared, int page_bytes = 0, int stride_bytes = 1024,
                                                     int swizzled_bytes = 128) {
  return uint64_t((shared_address(shared) & 0x3ffff) >> 4) | uint64_t(page_bytes >> 4) << 16 |
         uint64_t(stride_bytes >> 4) << 32 |
         uint64_t(swizzled_bytes == 128  ? 1
                  : swizzled_bytes == 64 ? 2
                                         : 0)
             << 62;
}

// The same matrix, so many bytes further on.
__device__ __forceinline__ uint64_t wgmma_advance(uint64_t descriptor, int bytes) {
  return descriptor + uint64_t(bytes >> 4);
}

// The compiler moves nothing that makes or uses these registers from one side of this to the other. It does not know
// that wgmma writes registers later: it must be told where they may be read.
__device__ __forceinline__ void pin([[maybe_unused]] float& x) {
#ifndef WORKBOOK_SIMT
  asm volatile("" : "+f"(x)::"memory");
#endif
}
__device__ __forceinline__ void pin([[maybe_unused]] uint32_t& x) {
#ifndef WORKBOOK_SIMT
  asm volatile("" : "+r"(x)::"memory");
#endif
}
template <class T, int n>
__device__ __forceinline__ void pin([[maybe_unused]] T (&x)[n]) {
#ifndef WORKBOOK_SIMT
#pragma unroll
  for (int i = 0; i < n; i++) pin(x[i]);
#endif
}

// Before the first product, and before one whose D or A in registers the threads have written: those are D and A.
__device__ __forceinline__ void wgmma_fence() {
#ifdef WORKBOOK_SIMT
  simt::wgmma_fence();
#else
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
template <class Registers>
__device__ __forceinline__ void wgmma_fence(Registers& registers) {
  pin(registers);
  wgmma_fence();
}

__device__ __forceinline__ void wgmma_commit() {
#ifdef WORKBOOK_SIMT
  simt::wgmma_commit();
#else
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

// Waits until at most PENDING_GROUPS groups are unfinished. The registers are those that may be read from here on.
#ifdef WORKBOOK_SIMT
template <int PENDING_GROUPS>
inline void wgmma_wait(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::wgmma_wait(PENDING_GROUPS, file, line);
}
template <int PENDING_GROUPS, class D>
inline void wgmma_wait(D&, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::wgmma_wait(PENDING_GROUPS, file, line);
}
template <int PENDING_GROUPS, class D, class E>
inline void wgmma_wait(D&, E&, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::wgmma_wait(PENDING_GROUPS, file, line);
}
#else
template <int PENDING_GROUPS>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING_GROUPS) : "memory");
}
template <int PENDING_GROUPS, class D>
__device__ __forceinline__ void wgmma_wait(D& d) {
  wgmma_wait<PENDING_GROUPS>();
  pin(d);
}
template <int PENDING_GROUPS, class D, class E>
__device__ __forceinline__ void wgmma_wait(D& d, E& e) {
  wgmma_wait<PENDING_GROUPS>();
  pin(d);
  pin(e);
}
#endif

#ifndef WORKBOOK_SIMT
#include "device/wgmma_ptx.h"
#endif

template <int N>
constexpr bool wgmma_has_columns = (N >= 64 && N <= 192 && N % 16 == 0) || N == 256;
template <class T, Major a_major, Major b_major>
constexpr bool wgmma_has_form = wgmma_type<T> != WgmmaType::none &&
                                (sizeof(T) == 2 || (a_major == Major::k && b_major == Major::k));

// D += A B, or D = A B if not `accumulate`, with A and B in shared memory: their descriptors, and their majors.
template <class T, Major a_major = Major::k, Major b_major = Major::k, int fragments>
__device__ __forceinline__ void wgmma(float (&d)[fragments][4], uint64_t a, uint64_t b, bool accumulate) {
  static_assert(wgmma_has_form<T, a_major, b_major>);
  static_assert(wgmma_has_columns<8 * fragments>, "N is 64 to 192 in steps of 16, or 256");
#ifdef WORKBOOK_SIMT
  simt::wgmma(simt::Element(wgmma_type<T>), 8 * fragments, d[0], a, a_major == Major::mn, b, b_major == Major::mn,
              accumulate);
#else
  wgmma_ptx::from_shared<T, a_major == Major::mn, b_major == Major::mn>(d, a, b, accumulate);
#endif
}

// The same with A in registers.
template <class T, Major b_major = Major::k, int fragments>
__device__ __forceinline__ void wgmma(float (&d)[fragments][4], const uint32_t (&a)[4], uint64_t b, bool accumulate) {
  static_assert(wgmma_has_form<T, Major::k, b_major>);
  static_assert(wgmma_has_columns<8 * fragments>, "N is 64 to 192 in steps of 16, or 256");
#ifdef WORKBOOK_SIMT
  simt::registers_read(a, 4);
  simt::wgmma(simt::Element(wgmma_type<T>), 8 * fragments, d[0], a, b, b_major == Major::mn, accumulate);
#else
  wgmma_ptx::from_registers<T, b_major == Major::mn>(d, a, b, accumulate);
#endif
}
