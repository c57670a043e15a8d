// Atomic functions. They are relaxed, as on the GPU, and whole for all threads there are; where kernels are traced,
// those of one block (_block) count as atomic for its threads alone. Each returns the old value. Where kernels are
// traced, each is one access, whatever they take here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "simt/cuda/half.h"
#include "simt/cuda/thread.h"
#include "simt/engine/types.h"

namespace simt {

// Memory that no other OS thread touches while a launch runs: shared memory, and all of it if the launch has one OS
// thread. There an atomic function needs no atomic instruction, which takes ten times as long.
struct OwnMemory {
  struct Range {
    std::uintptr_t begin;
    std::size_t bytes;
  } dynamic, rest;
};
extern constinit thread_local OwnMemory own_memory;

__forceinline__ bool owns(const void* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  return address - own_memory.rest.begin < own_memory.rest.bytes ||
         address - own_memory.dynamic.begin < own_memory.dynamic.bytes;
}

// *p += v, or p[i] += x[i] for four floats, each in one piece; returns the old value.
float atomic_add(float* p, float v);
void atomic_add_4(float* p, const float* x);

inline namespace SIMT_VARIANT {

// *p = change(*p), in one piece; returns the old value. Not inlined, so that its return address is the kernel's line,
// and not instrumented, because what it takes here are no accesses of the kernel.
template <class T, class Change>
__attribute__((noinline, no_sanitize_thread)) T atomic_update(T* p, Change change) {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  static_assert(sizeof(T) == sizeof(Bits));
  note_update(__builtin_return_address(0), p, sizeof(T));
  auto* bits = reinterpret_cast<Bits*>(p);
  Bits before = __atomic_load_n(bits, __ATOMIC_RELAXED), after;
  if (owns(p)) {
    after = __builtin_bit_cast(Bits, static_cast<T>(change(__builtin_bit_cast(T, before))));
    __atomic_store_n(bits, after, __ATOMIC_RELAXED);
    return __builtin_bit_cast(T, before);
  }
  do {
    after = __builtin_bit_cast(Bits, static_cast<T>(change(__builtin_bit_cast(T, before))));
  } while (!__atomic_compare_exchange_n(bits, &before, after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return __builtin_bit_cast(T, before);
}

// The same of what the compiler has a function for. Kernels that are traced call only that, so that it is one access.
template <class T>
__forceinline__ T fetch_add(T* p, T v) {
#ifndef SIMT_TRACED
  if (owns(p)) {
    const T before = __atomic_load_n(p, __ATOMIC_RELAXED);
    __atomic_store_n(p, static_cast<T>(std::make_unsigned_t<T>(before) + std::make_unsigned_t<T>(v)), __ATOMIC_RELAXED);
    return before;
  }
#endif
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}

template <class T>
__forceinline__ T exchange(T* p, T v) {
#ifndef SIMT_TRACED
  if (owns(p)) {
    const T before = __atomic_load_n(p, __ATOMIC_RELAXED);
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
    return before;
  }
#endif
  return __atomic_exchange_n(p, v, __ATOMIC_RELAXED);
}

template <class T>
__forceinline__ T compare_and_swap(T* p, T expected, T v) {
#ifndef SIMT_TRACED
  if (owns(p)) {
    const T before = __atomic_load_n(p, __ATOMIC_RELAXED);
    if (before == expected) __atomic_store_n(p, v, __ATOMIC_RELAXED);
    return before;
  }
#endif
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

}  // namespace SIMT_VARIANT
}  // namespace simt

__device__ inline int atomicAdd(int* p, int v) { return simt::fetch_add(p, v); }
__device__ inline unsigned atomicAdd(unsigned* p, unsigned v) { return simt::fetch_add(p, v); }
__device__ inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long v) {
  return simt::fetch_add(p, v);
}
__device__ inline float atomicAdd(float* p, float v) { return simt::atomic_add(p, v); }
__device__ inline double atomicAdd(double* p, double v) {
  return simt::atomic_update(p, [v](double x) { return x + v; });
}
__device__ inline __half atomicAdd(__half* p, __half v) {
  return simt::atomic_update(p, [v](__half x) { return x + v; });
}
__device__ inline __nv_bfloat16 atomicAdd(__nv_bfloat16* p, __nv_bfloat16 v) {
  return simt::atomic_update(p, [v](__nv_bfloat16 x) { return x + v; });
}
__device__ inline __half2 atomicAdd(__half2* p, __half2 v) {
  return simt::atomic_update(p, [v](__half2 x) { return __half2{x.x + v.x, x.y + v.y}; });
}
__device__ inline __nv_bfloat162 atomicAdd(__nv_bfloat162* p, __nv_bfloat162 v) {
  return simt::atomic_update(p, [v](__nv_bfloat162 x) { return __nv_bfloat162{x.x + v.x, x.y + v.y}; });
}
__device__ inline float2 atomicAdd(float2* p, float2 v) {
  return simt::atomic_update(p, [v](float2 x) { return float2{x.x + v.x, x.y + v.y}; });
}

__device__ inline int atomicSub(int* p, int v) {
  return simt::fetch_add(p, static_cast<int>(-static_cast<unsigned>(v)));
}
__device__ inline unsigned atomicSub(unsigned* p, unsigned v) { return simt::fetch_add(p, -v); }

__device__ inline int atomicExch(int* p, int v) { return simt::exchange(p, v); }
__device__ inline unsigned atomicExch(unsigned* p, unsigned v) { return simt::exchange(p, v); }
__device__ inline unsigned long long atomicExch(unsigned long long* p, unsigned long long v) {
  return simt::exchange(p, v);
}
__device__ inline float atomicExch(float* p, float v) {
  return __builtin_bit_cast(float, simt::exchange(reinterpret_cast<unsigned*>(p), __builtin_bit_cast(unsigned, v)));
}

#define SIMT_ATOMIC(T, name, expression)                                              \
  __device__ inline T name(T* p, T v) {                                               \
    return simt::atomic_update(p, [v](T old) { return static_cast<T>(expression); }); \
  }
#define SIMT_ATOMIC_COMPARE(T) \
  __device__ inline T atomicCAS(T* p, T expected, T v) { return simt::compare_and_swap(p, expected, v); }
#define SIMT_ATOMIC_BITS(T)         \
  SIMT_ATOMIC(T, atomicAnd, old& v) \
  SIMT_ATOMIC(T, atomicOr, old | v) \
  SIMT_ATOMIC(T, atomicXor, old ^ v)
#define SIMT_ATOMIC_ORDER(T)                   \
  SIMT_ATOMIC(T, atomicMin, v < old ? v : old) \
  SIMT_ATOMIC(T, atomicMax, old < v ? v : old)
SIMT_ATOMIC_BITS(int)
SIMT_ATOMIC_BITS(unsigned)
SIMT_ATOMIC_BITS(unsigned long long)
SIMT_ATOMIC_ORDER(int)
SIMT_ATOMIC_ORDER(unsigned)
SIMT_ATOMIC_ORDER(long long)
SIMT_ATOMIC_ORDER(unsigned long long)
SIMT_ATOMIC_COMPARE(int)
SIMT_ATOMIC_COMPARE(unsigned)
SIMT_ATOMIC_COMPARE(unsigned long long)
SIMT_ATOMIC_COMPARE(unsigned short)
SIMT_ATOMIC(unsigned, atomicInc, old >= v ? 0 : old + 1)
SIMT_ATOMIC(unsigned, atomicDec, old == 0 || old > v ? v : old - 1)
#undef SIMT_ATOMIC
#undef SIMT_ATOMIC_COMPARE
#undef SIMT_ATOMIC_BITS
#undef SIMT_ATOMIC_ORDER

// The same with a scope.
#define SIMT_SCOPES(name)                                                                       \
  template <class T, class... V>                                                                \
  __device__ inline auto name##_block(T* p, V... v)->decltype(name(p, static_cast<T>(v)...)) {  \
    simt::atomics_are_of_block(true);                                                           \
    const auto before = name(p, static_cast<T>(v)...);                                          \
    simt::atomics_are_of_block(false);                                                          \
    return before;                                                                              \
  }                                                                                             \
  template <class T, class... V>                                                                \
  __device__ inline auto name##_system(T* p, V... v)->decltype(name(p, static_cast<T>(v)...)) { \
    return name(p, static_cast<T>(v)...);                                                       \
  }
SIMT_SCOPES(atomicAdd)
SIMT_SCOPES(atomicSub)
SIMT_SCOPES(atomicExch)
SIMT_SCOPES(atomicMin)
SIMT_SCOPES(atomicMax)
SIMT_SCOPES(atomicInc)
SIMT_SCOPES(atomicDec)
SIMT_SCOPES(atomicCAS)
SIMT_SCOPES(atomicAnd)
SIMT_SCOPES(atomicOr)
SIMT_SCOPES(atomicXor)
#undef SIMT_SCOPES
