// The functions that GCC calls at every load and store of code compiled with -fsanitize=thread, defined here instead of
// in its library: they tell the observers of the launch. Atomic operations have to be carried out as well.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "simt/cuda/host_checks.h"
#include "simt/engine/device_memory.h"
#include "simt/engine/engine.h"
#include "simt/engine/findings.h"
#include "simt/trace/host_objects.h"
#include "simt/trace/races.h"

namespace {

bool of_a_kernel(const void* pc, const void* address, simt::Access access, bool is_volatile = false) {
  if (simt::worker != nullptr && simt::worker->in_kernel()) return true;
  if (simt::DeviceVariable::may_have(address)) simt::host_touches_variable(pc, address, simt::writes(access));
  if (const auto a = reinterpret_cast<std::uintptr_t>(address); a >= simt::awaited.begin && a < simt::awaited.end)
    simt::host_touches_awaited(pc, address, simt::writes(access), is_volatile || simt::is_atomic(access));
  if (is_volatile || simt::is_atomic(access)) {
    simt::DeviceMemory& memory = simt::DeviceMemory::instance();
    memory.host_looks_at(address);
    if (memory.contains(address) || simt::DeviceVariable::may_have(address)) simt::host_checks::looks_at(address);
  }
  if (simt::HostObjects::any_of_kernels() && !simt::writes(access))
    simt::HostObjects::instance().host_reads(pc, address);
  if (simt::host_writes != nullptr && simt::writes(access)) simt::host_writes(address);
  return false;
}

__forceinline__ void note(const void* pc, const void* address, std::size_t size, simt::Access access) {
  if (of_a_kernel(pc, address, access)) simt::worker->tell_of_access(pc, address, size, access);
}

// An access that a GPU makes in one piece.
__forceinline__ void note_aligned(const void* pc, const void* address, std::size_t size, simt::Access access,
                                  bool is_volatile = false) {
  if (of_a_kernel(pc, address, access, is_volatile))
    simt::worker->tell_of_whole_access(pc, address, size, access, is_volatile);
}

}  // namespace

// Where kernels are traced, every launch is searched for mistakes, from the first one on.
namespace simt {
RaceDetector& race_detector() {
  static RaceDetector& detector = *new RaceDetector;
  return detector;
}
Observer& first_observer();
Observer& first_observer() { return race_detector(); }
}  // namespace simt

// GCC's names: they are what this file is about.
#pragma GCC diagnostic ignored "-Wpedantic"
#define ACCESS(name, size, access) \
  extern "C" void __tsan_##name(void* address) { note_aligned(__builtin_return_address(0), address, size, access); }
#define VOLATILE_ACCESS(name, size, access)                                 \
  extern "C" void __tsan_##name(void* address) {                            \
    note_aligned(__builtin_return_address(0), address, size, access, true); \
  }
#define ACCESSES(size)                                           \
  ACCESS(read##size, size, simt::Access::read)                   \
  ACCESS(write##size, size, simt::Access::write)                 \
  VOLATILE_ACCESS(volatile_read##size, size, simt::Access::read) \
  VOLATILE_ACCESS(volatile_write##size, size, simt::Access::write)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
#define UNALIGNED_ACCESS(name, size, access) \
  extern "C" void __tsan_##name(void* address) { note(__builtin_return_address(0), address, size, access); }
#define UNALIGNED(size)                                                     \
  UNALIGNED_ACCESS(unaligned_read##size, size, simt::Access::read)          \
  UNALIGNED_ACCESS(unaligned_write##size, size, simt::Access::write)        \
  UNALIGNED_ACCESS(unaligned_volatile_read##size, size, simt::Access::read) \
  UNALIGNED_ACCESS(unaligned_volatile_write##size, size, simt::Access::write)
UNALIGNED(2)
UNALIGNED(4)
UNALIGNED(8)
UNALIGNED(16)

// Objects of other sizes, which a GPU moves by pieces too: at most 16 bytes each.
namespace {
void note_range(const void* pc, const void* address, std::size_t size, simt::Access access) {
  for (std::size_t i = 0; i < size; i += 16)
    note(pc, static_cast<const char*>(address) + i, size - i < 16 ? size - i : 16, access);
}
}  // namespace
#define RANGE(name, access)                                         \
  extern "C" void __tsan_##name(char* address, std::size_t size) {  \
    note_range(__builtin_return_address(0), address, size, access); \
  }
RANGE(read_range, simt::Access::read)
RANGE(write_range, simt::Access::write)

// What takes the place of memcpy and its like (cuda/bytes.h).
#define COPY(name)                                                                     \
  extern "C" void* simt_traced_##name(void* to, const void* from, std::size_t bytes);  \
  extern "C" void* simt_traced_##name(void* to, const void* from, std::size_t bytes) { \
    note_range(__builtin_return_address(0), from, bytes, simt::Access::read);          \
    note_range(__builtin_return_address(0), to, bytes, simt::Access::write);           \
    if (simt::HostObjects::any() || simt::HostObjects::any_of_kernels())               \
      simt::HostObjects::instance().copied(to, from, bytes);                           \
    return std::name(to, from, bytes);                                                 \
  }
COPY(memcpy)
COPY(memmove)
extern "C" void* simt_traced_memset(void* to, int value, std::size_t bytes);
extern "C" void* simt_traced_memset(void* to, int value, std::size_t bytes) {
  note_range(__builtin_return_address(0), to, bytes, simt::Access::write);
  return std::memset(to, value, bytes);
}
extern "C" char* simt_traced_strcpy(char* to, const char* from);
extern "C" char* simt_traced_strcpy(char* to, const char* from) {
  const std::size_t bytes = std::strlen(from) + 1;
  note_range(__builtin_return_address(0), from, bytes, simt::Access::read);
  note_range(__builtin_return_address(0), to, bytes, simt::Access::write);
  return std::strcpy(to, from);
}

// Those that GCC calls at every comparison of code compiled with -fsanitize-coverage=trace-cmp.
namespace {
void compared() {
  if (simt::worker != nullptr && simt::worker->in_kernel() && !simt::worker->computing())
    simt::worker->observe(&simt::Observer::compared);
}
}  // namespace
#define COMPARISON(name, type) \
  extern "C" void __sanitizer_cov_trace_##name(type, type) { compared(); }
COMPARISON(cmp1, std::uint8_t)
COMPARISON(cmp2, std::uint16_t)
COMPARISON(cmp4, std::uint32_t)
COMPARISON(cmp8, std::uint64_t)
COMPARISON(cmpf, float)
COMPARISON(cmpd, double)
COMPARISON(const_cmp1, std::uint8_t)
COMPARISON(const_cmp2, std::uint16_t)
COMPARISON(const_cmp4, std::uint32_t)
COMPARISON(const_cmp8, std::uint64_t)
extern "C" void __sanitizer_cov_trace_switch(std::uint64_t, const std::uint64_t*) { compared(); }

extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_vptr_update(void** address, void*) {
  const bool by_kernel = simt::worker != nullptr && simt::worker->in_kernel();
  if (!by_kernel) simt::HostObjects::instance().made(address);
  note_aligned(__builtin_return_address(0), address, sizeof *address, simt::Access::write);
  if (by_kernel) simt::HostObjects::instance().made_by_kernel(address);
}
extern "C" void __tsan_vptr_read(void**) {}

// An atomic operation that releases is one behind a fence.
namespace {
void releases(int order) {
  if (order >= __ATOMIC_RELEASE && simt::worker != nullptr && simt::worker->in_kernel() && !simt::worker->computing())
    simt::worker->observe(&simt::Observer::fence, simt::worker->atomics_are_of_block());
}
}  // namespace
extern "C" void __tsan_atomic_thread_fence(int) {
  releases(__ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
extern "C" void __tsan_atomic_signal_fence(int) {}

#define UPDATE(bits, name, access, operation)                                                                \
  extern "C" std::uint##bits##_t __tsan_atomic##bits##_##name(std::uint##bits##_t* p, std::uint##bits##_t v, \
                                                              int order) {                                   \
    releases(order);                                                                                         \
    note_aligned(__builtin_return_address(0), p, bits / 8, simt::Access::access);                            \
    return operation(p, v, __ATOMIC_SEQ_CST);                                                                \
  }
#define COMPARE(bits, name, result)                                                                     \
  extern "C" result __tsan_atomic##bits##_##name(std::uint##bits##_t* p, std::uint##bits##_t* expected, \
                                                 std::uint##bits##_t v, int order, int) {               \
    releases(order);                                                                                    \
    note_aligned(__builtin_return_address(0), p, bits / 8, simt::Access::atomic);                       \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);      \
  }
#define ATOMICS(bits)                                                                                     \
  extern "C" std::uint##bits##_t __tsan_atomic##bits##_load(const std::uint##bits##_t* p, int) {          \
    note_aligned(__builtin_return_address(0), p, bits / 8, simt::Access::atomic_read);                    \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                          \
  }                                                                                                       \
  extern "C" void __tsan_atomic##bits##_store(std::uint##bits##_t* p, std::uint##bits##_t v, int order) { \
    releases(order);                                                                                      \
    note_aligned(__builtin_return_address(0), p, bits / 8, simt::Access::atomic_write);                   \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                             \
  }                                                                                                       \
  UPDATE(bits, exchange, exchange, __atomic_exchange_n)                                                   \
  UPDATE(bits, fetch_add, atomic, __atomic_fetch_add)                                                     \
  UPDATE(bits, fetch_sub, atomic, __atomic_fetch_sub)                                                     \
  UPDATE(bits, fetch_and, atomic, __atomic_fetch_and)                                                     \
  UPDATE(bits, fetch_or, atomic, __atomic_fetch_or)                                                       \
  UPDATE(bits, fetch_xor, atomic, __atomic_fetch_xor)                                                     \
  UPDATE(bits, fetch_nand, atomic, __atomic_fetch_nand)                                                   \
  COMPARE(bits, compare_exchange_strong, bool)                                                            \
  COMPARE(bits, compare_exchange_weak, bool)                                                              \
  extern "C" std::uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                              \
      std::uint##bits##_t* p, std::uint##bits##_t expected, std::uint##bits##_t v, int order, int) {      \
    releases(order);                                                                                      \
    note_aligned(__builtin_return_address(0), p, bits / 8, simt::Access::atomic);                         \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
    return expected;                                                                                      \
  }
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)
