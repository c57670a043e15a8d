// What cuda::memcpy_async and cooperative_groups::memcpy_async are made of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simt/cuda/thread.h"
#include "simt/cuda/warp.h"
#include "simt/hopper/hopper.h"

namespace cuda {

// So many bytes, of places that are aligned so.
template <std::size_t alignment>
struct aligned_size_t {
  static constexpr std::size_t align = alignment;
  std::size_t value;
  explicit constexpr aligned_size_t(std::size_t bytes) : value(bytes) {}
  constexpr operator std::size_t() const { return value; }
};

}  // namespace cuda

namespace simt {

// The part of the thread `rank` of `threads`: cp.async in the widest pieces that fit, from global to shared memory; any
// other copy, or one that is not aligned to 4 bytes, is done at once. The copies are complete with the mbarrier's phase
// or, if that is null, with the thread's group.
__attribute__((always_inline)) inline void copy_async(void* to, const void* from, std::size_t bytes, unsigned rank,
                                                      unsigned threads, std::uint64_t* mbarrier) {
  char* const target = static_cast<char*>(to);
  const char* const source = static_cast<const char*>(from);
  const auto ends = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  const std::size_t piece = ends % 16 == 0 ? 16 : ends % 8 == 0 ? 8 : 4;
  if (ends % 4 != 0 || !is_shared(to) || !is_global(from)) {
    for (std::size_t at = rank; at < bytes; at += threads) target[at] = source[at];
    return;
  }
  for (std::size_t at = rank * piece; at < bytes; at += threads * piece) {
    if (mbarrier != nullptr)
      mbarrier_cp_async(mbarrier, target + at, source + at, piece);
    else
      cp_async(target + at, source + at, piece, piece);
  }
}

}  // namespace simt
