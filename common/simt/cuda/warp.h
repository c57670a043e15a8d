// What the lanes of a warp do together beyond thread.h, loads and stores with cache hints, and the odd functions of a
// thread. No chapter uses them; files from elsewhere do, and solutions of exercises.
#pragma once

#include <bit>
#include <cstdint>

#include "simt/cuda/thread.h"

namespace simt {

// Every lane of `mask` gets all operands combined, in the order of the lanes.
template <class Combine, class T>
T warp_reduce(const char* name, unsigned mask, T value, const char* file, int line) {
  warp_collective(
      name, mask, &value,
      [](void* const operands[32], unsigned lanes) {
        T all = *static_cast<T*>(operands[std::countr_zero(lanes)]);
        for (unsigned rest = lanes & (lanes - 1); rest != 0; rest &= rest - 1)
          all = Combine()(all, *static_cast<T*>(operands[std::countr_zero(rest)]));
        for (unsigned rest = lanes; rest != 0; rest &= rest - 1)
          *static_cast<T*>(operands[std::countr_zero(rest)]) = all;
      },
      file, line);
  return value;
}

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};

// The lanes that passed the same bits; for a lane, of `mask`.
unsigned match(const char* name, unsigned mask, std::uint64_t bits, const char* file, int line);

template <class T>
std::uint64_t bits_of(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}

// The lanes of this warp that come here before it waits for anything else, or returns: after an `if`, those that took
// it.
unsigned converged(const char* name, const char* file, int line);

// Ends the launch: the kernel, block, thread and line, and this.
[[noreturn]] void trap(const char* what, const char* file, int line);
[[noreturn]] void unsupported(const char* what, const char* file, int line);

// PTX's addresses of shared memory, of 32 bits (shared_memory.h).
std::uint32_t shared_address(const void* pointer);
void* shared_pointer(std::uint32_t address);
bool is_shared(const void* pointer);
bool is_global(const void* pointer);

}  // namespace simt

#define SIMT_REDUCE(T, name, Combine)                                                                       \
  inline T name(unsigned mask, T value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) { \
    return simt::warp_reduce<simt::Combine>(#name, mask, value, file, line);                                \
  }
SIMT_REDUCE(int, __reduce_add_sync, Add)
SIMT_REDUCE(unsigned, __reduce_add_sync, Add)
SIMT_REDUCE(int, __reduce_min_sync, Min)
SIMT_REDUCE(unsigned, __reduce_min_sync, Min)
SIMT_REDUCE(int, __reduce_max_sync, Max)
SIMT_REDUCE(unsigned, __reduce_max_sync, Max)
SIMT_REDUCE(unsigned, __reduce_and_sync, And)
SIMT_REDUCE(unsigned, __reduce_or_sync, Or)
SIMT_REDUCE(unsigned, __reduce_xor_sync, Xor)
#undef SIMT_REDUCE

template <class T>
unsigned __match_any_sync(unsigned mask, T value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return simt::match("__match_any_sync", mask, simt::bits_of(value), file, line);
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  *all = simt::match("__match_all_sync", mask, simt::bits_of(value), file, line) == mask;
  return *all ? mask : 0;
}

// Loads and stores with a cache hint. The engine has no caches, so it takes them for plain ones.
#define SIMT_LOAD(name)                  \
  template <class T>                     \
  __device__ inline T name(const T* p) { \
    return *p;                           \
  }
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldlu)
SIMT_LOAD(__ldcv)
#undef SIMT_LOAD
#define SIMT_STORE(name)                                             \
  template <class T>                                                 \
  __device__ inline void name(T* p, std::type_identity_t<T> value) { \
    *p = value;                                                      \
  }
SIMT_STORE(__stwb)
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwt)
#undef SIMT_STORE

inline void __trap(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::trap("__trap()", file, line);
}
inline void __brkpt() {}
inline void __nanosleep(unsigned) {}
inline std::size_t __cvta_generic_to_shared(const void* p) { return simt::shared_address(p); }
inline void* __cvta_shared_to_generic(std::size_t a) { return simt::shared_pointer(static_cast<std::uint32_t>(a)); }
inline std::size_t __cvta_generic_to_global(const void* p) { return reinterpret_cast<std::size_t>(p); }
inline void* __cvta_global_to_generic(std::size_t a) { return reinterpret_cast<void*>(a); }
inline unsigned __isShared(const void* p) { return simt::is_shared(p); }
inline unsigned __isGlobal(const void* p) { return simt::is_global(p); }
