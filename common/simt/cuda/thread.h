// What one CUDA thread sees: who it is, and how it meets the others.
//
// Each meeting point notes the source line it was called from (two plain default arguments: one of struct type
// would give this header's line), so that a deadlock or a divergence can be reported by line.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "simt/engine/builtin_variables.h"
#include "simt/engine/context.h"
#include "simt/engine/types.h"

namespace simt {

// The calling thread has come to such a meeting point: whose turn is it now? What it waits for is written into the
// space on its stack, for messages.
struct SpaceOfWait {
  void* words[4];
};
Turn come_to_barrier(SpaceOfWait& space, const char* file, int line);
Turn come_to_warp(SpaceOfWait& space, unsigned mask, const char* file, int line);

struct Vote {
  bool predicate;
  unsigned yes;
  unsigned lanes;
};
Turn come_to_vote(SpaceOfWait& space, Vote& vote, const char* name, unsigned mask, const char* file, int line);
__forceinline__ Vote vote(const char* name, unsigned mask, bool predicate, const char* file, int line) {
  SpaceOfWait space;
  Vote vote = {predicate, 0, 0};
  make_room(come_to_vote(space, vote, name, mask, file, line));
  return vote;
}

struct Shuffle {
  std::uint64_t value;
  int source;
  bool source_came;
};
Turn come_to_shuffle(SpaceOfWait& space, Shuffle& shuffle, const char* name, unsigned mask, const char* file, int line);
// What such a lane gets; in a program of a chapter it ends the launch.
std::uint64_t source_missing(const SpaceOfWait& space, const Shuffle& shuffle, unsigned mask);
// The value that lane `source` of this warp passed in the same call.
__forceinline__ std::uint64_t shuffle(const char* name, unsigned mask, std::uint64_t value, int source,
                                      const char* file, int line) {
  SpaceOfWait space;
  Shuffle shuffle = {value, source, false};
  make_room(come_to_shuffle(space, shuffle, name, mask, file, line));
  return shuffle.source_came ? shuffle.value : source_missing(space, shuffle, mask);
}

}  // namespace simt

// Barriers of the thread block. Threads that have returned do not count.
__forceinline__ void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::SpaceOfWait space;
  simt::make_room(simt::come_to_barrier(space, file, line));
}
int __syncthreads_count(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE());
int __syncthreads_and(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE());
int __syncthreads_or(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE());

// Collectives of a warp: every lane that `mask` names and that has not returned must call with the same mask.
__forceinline__ void __syncwarp(unsigned mask = 0xffffffff, const char* file = __builtin_FILE(),
                                int line = __builtin_LINE()) {
  simt::SpaceOfWait space;
  simt::make_room(simt::come_to_warp(space, mask, file, line));
}
__forceinline__ unsigned __ballot_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                                       int line = __builtin_LINE()) {
  return simt::vote("__ballot_sync", mask, predicate != 0, file, line).yes;
}
__forceinline__ int __all_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) {
  const simt::Vote vote = simt::vote("__all_sync", mask, predicate != 0, file, line);
  return vote.yes == vote.lanes;
}
__forceinline__ int __any_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) {
  return simt::vote("__any_sync", mask, predicate != 0, file, line).yes != 0;
}
// The lanes of this warp that come to this line before they wait for anything else, or return.
unsigned __activemask(const char* file = __builtin_FILE(), int line = __builtin_LINE());

namespace simt {

// One collective of a warp, for the wrappers of common/device: every lane of `mask` calls it with a pointer to its
// own operands; the last to arrive runs `compute` once for all of them, then all go on. operands[lane] is null
// for lanes that the mask does not name. All lanes that it names must take part.
void warp_collective(const char* name, unsigned mask, void* operand,
                     void (*compute)(void* const operands[32], unsigned mask), const char* file = __builtin_FILE(),
                     int line = __builtin_LINE());

// Named barriers, for the wrappers of common/device: 1 to 15. The calling thread comes to barrier `number`, and waits
// if `waits`; all that wait go on when `threads` have come.
void named_barrier(const char* name, int number, int threads, bool waits, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE());

// Returns when another block has set *word to `value`, and sees what it wrote before (acquire). The launch fails when
// no block that has started can do so any more.
void wait_for_value(const char* name, const int* word, int value, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE());

// Waits, in a dependent launch, for the kernel before: which has ended here, but need not have on a GPU.
void grid_dependency_wait(const char* file = __builtin_FILE(), int line = __builtin_LINE());

// Clusters (engine/cluster.cc). Blocks are told by their ranks. Each thread arrives at its cluster's barrier, and then
// waits; an arrival that does not release orders nothing.
unsigned cluster_rank();
unsigned cluster_blocks();
uint3 cluster_index();  // among the clusters of the grid
dim3 cluster_dim();     // in blocks
void cluster_arrive(bool releases, const char* file = __builtin_FILE(), int line = __builtin_LINE());
void cluster_wait(const char* file = __builtin_FILE(), int line = __builtin_LINE());
// Where the block of that rank has what this block has at `pointer`; and whose shared memory a pointer is to.
void* map_shared(const void* pointer, unsigned rank, const char* file = __builtin_FILE(), int line = __builtin_LINE());
unsigned shared_rank(const void* pointer);
// __cluster_dims__: the first thing that a kernel says.
void asks_for_cluster(unsigned x, unsigned y = 1, unsigned z = 1);
// __launch_bounds__: the launch fails if its blocks have more threads.
void allows_threads(unsigned most, const char* file = __builtin_FILE(), int line = __builtin_LINE());
// The calling thread's launch fails, by what CUDA leaves undefined.
[[noreturn]] void undefined(const char* name, const char* what, int value, const char* file, int line);

__forceinline__ void check_width(const char* name, int width, const char* file, int line) {
  if (width < 1 || width > 32 || (width & (width - 1)) != 0) [[unlikely]]
    undefined(name, "its width has to be a power of two, at most 32, and is", width, file, line);
}

// cp.async, per thread: `bytes` (4, 8 or 16) from global to shared memory, of which the part beyond `source_bytes`
// is filled with zeros. The copy happens at the wait for its group, so a forgotten wait reads what was there before.
void cp_async(void* shared, const void* global, std::size_t bytes, std::size_t source_bytes);
void cp_async_commit();  // the copies since the last commit become a group
// Returns when at most so many of the newest groups are unfinished.
void cp_async_wait(int pending_groups, const char* file = __builtin_FILE(), int line = __builtin_LINE());

// So many operations are an mma of this warp.
void matrix_product(std::uint64_t flops);

// What observers cannot see in a kernel's loads and stores, for the wrappers of common/device: that this lane passes
// the address of a row of 16 bytes to an ldmatrix, that a template of atomics.h updates these bytes for the kernel at
// `pc`, a number that a kernel shows, or a thread's share of it, and which step of the algorithm begins. Kernels that
// are not traced tell nothing.
inline namespace SIMT_VARIANT {
#ifdef SIMT_TRACED
void ldmatrix_row(const void* row);
void read_only(const void* from, std::size_t bytes);  // by __ldg()
// A collective reads these registers, or writes them: accesses of the kernel's, if they are none.
void registers_read(const void* first, int count);
void registers_written(const void* first, int count);
void note_update(const void* pc, const void* p, std::size_t bytes);
void atomics_are_of_block(bool are);  // from now on; fences, too
void watch(const char* name, std::int64_t row, std::int64_t column, float value, bool is_share);
void watch_step(const char* name);
float peek(const float* from);  // no access of the kernel's: it is not counted
#else
inline void ldmatrix_row(const void*) {}
inline void read_only(const void*, std::size_t) {}
inline void registers_read(const void*, int) {}
inline void registers_written(const void*, int) {}
inline void note_update(const void*, const void*, std::size_t) {}
inline void atomics_are_of_block(bool) {}
inline void watch(const char*, std::int64_t, std::int64_t, float, bool) {}
inline void watch_step(const char*) {}
inline float peek(const float*) { return 0; }
#endif
}  // namespace SIMT_VARIANT

// The dynamic shared memory of this block.
void* dynamic_shared_memory();

int lane();  // of the calling thread, 0 to 31

template <class T>
T shuffle_value(const char* name, unsigned mask, T value, int source, const char* file, int line) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) <= 8), "shuffles move at most 64 bits");
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = shuffle(name, mask, bits, source, file, line);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace simt

// Shuffles within segments of `width` lanes (a power of two). A source outside the segment means the own value.
template <class T>
requires simt::is_shuffled<T> T __shfl_sync(unsigned mask, T value, int source, int width = 32,
                                            const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::check_width("__shfl_sync", width, file, line);
  const int from = (simt::lane() & -width) | (source & (width - 1));
  return simt::shuffle_value("__shfl_sync", mask, value, from, file, line);
}

template <class T>
requires simt::is_shuffled<T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                                               const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::check_width("__shfl_up_sync", width, file, line);
  const int lane = simt::lane();
  const bool inside = delta <= unsigned(lane & (width - 1));
  return simt::shuffle_value("__shfl_up_sync", mask, value, inside ? lane - int(delta) : lane, file, line);
}

template <class T>
requires simt::is_shuffled<T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                                                 const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::check_width("__shfl_down_sync", width, file, line);
  const int lane = simt::lane();
  const bool inside = delta < unsigned(width - (lane & (width - 1)));
  return simt::shuffle_value("__shfl_down_sync", mask, value, inside ? lane + int(delta) : lane, file, line);
}

template <class T>
requires simt::is_shuffled<T> T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                                                const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::check_width("__shfl_xor_sync", width, file, line);
  const int lane = simt::lane();
  const int from = lane ^ lane_mask;
  const bool inside = from < (lane & -width) + width;  // CUDA lets a lane read an earlier segment, not a later one
  return simt::shuffle_value("__shfl_xor_sync", mask, value, inside ? from : lane, file, line);
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() {
  simt::atomics_are_of_block(true);
  __atomic_thread_fence(__ATOMIC_ACQ_REL);
  simt::atomics_are_of_block(false);
}
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// Loads past one of the caches, which the engine does not have.
template <class T>
__forceinline__ T __ldg(const T* p) {
  simt::read_only(p, sizeof *p);
  return *p;
}
template <class T>
T __ldcg(const T* p) {
  return *p;
}

inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return std::countl_zero(unsigned(x)); }

long long clock64();  // nanoseconds here, clock cycles on a GPU
