// Cooperative groups: the threads of a grid, of a block, of a part of a warp, as objects. CUDA C++ Programming Guide,
// "Cooperative Groups". Asynchronous reductions are missing.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "simt/cuda/async_copy.h"
#include "simt/cuda/math.h"
#include "simt/cuda/thread.h"
#include "simt/cuda/warp.h"
#include "simt/engine/launch.h"

namespace simt {

// Returns when every thread of the grid has come, in a cooperative launch.
void grid_sync(const char* file, int line);
bool is_cooperative();

inline unsigned block_threads() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned thread_number() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }

// The lane with that many lanes of `mask` before it.
inline int lane_of_rank(unsigned mask, unsigned rank) {
  for (; rank > 0 && mask != 0; --rank) mask &= mask - 1;
  return mask != 0 ? std::countr_zero(mask) : 0;
}

// A shuffle of anything that can be copied byte by byte: 8 bytes at a time.
template <class T>
T shuffle_any(const char* name, unsigned mask, const T& value, int source, const char* file, int line) {
  static_assert(std::is_trivially_copyable_v<T>);
  if constexpr (sizeof(T) <= 8) {
    return shuffle_value(name, mask, value, source, file, line);
  } else {
    constexpr int words = (sizeof(T) + 7) / 8;
    std::uint64_t bits[words] = {};
    __builtin_memcpy(bits, &value, sizeof value);
    for (std::uint64_t& word : bits) word = shuffle(name, mask, word, source, file, line);
    T result = value;
    __builtin_memcpy(&result, bits, sizeof result);
    return result;
  }
}

// Tiles of 64 threads and more: a barrier of the calling thread's tile, and the pointer that each of its threads leaves
// for the others, from one barrier to the next. Threads are told by their numbers in the block.
void tile_sync(const char* name, unsigned size, const char* file, int line);
void set_tile_operand(const void* of_this_thread);
const void* tile_operand(unsigned thread);

// Each lane's operand and result in a reduction or a scan.
template <class T, class Op>
struct Share {
  T value;
  Op* op;
};

template <class T, class Op>
T group_reduce(unsigned mask, T value, Op op, const char* file, int line) {
  Share<T, Op> share = {value, &op};
  warp_collective(
      "reduce", mask, &share,
      [](void* const operands[32], unsigned lanes) {
        const auto of = [&](unsigned rest) { return static_cast<Share<T, Op>*>(operands[std::countr_zero(rest)]); };
        T all = of(lanes)->value;
        Op& op = *of(lanes)->op;
        for (unsigned rest = lanes & (lanes - 1); rest != 0; rest &= rest - 1) all = op(all, of(rest)->value);
        for (unsigned rest = lanes; rest != 0; rest &= rest - 1) of(rest)->value = all;
      },
      file, line);
  return share.value;
}

template <bool inclusive, class T, class Op>
T group_scan(unsigned mask, T value, Op op, const char* file, int line) {
  Share<T, Op> share = {value, &op};
  warp_collective(
      inclusive ? "inclusive_scan" : "exclusive_scan", mask, &share,
      [](void* const operands[32], unsigned lanes) {
        const auto of = [&](unsigned rest) { return static_cast<Share<T, Op>*>(operands[std::countr_zero(rest)]); };
        T before = {};
        bool first = true;
        for (unsigned rest = lanes; rest != 0; rest &= rest - 1, first = false) {
          const T own = of(rest)->value;
          const T until = first ? own : (*of(rest)->op)(before, own);
          of(rest)->value = inclusive ? until : before;
          before = until;
        }
      },
      file, line);
  return share.value;
}

}  // namespace simt

// A call's place, for messages.
#define SIMT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace cooperative_groups {

template <class T>
struct plus {
  __device__ T operator()(const T& a, const T& b) const { return a + b; }
};
template <class T>
struct less {
  __device__ T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  __device__ T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  __device__ T operator()(const T& a, const T& b) const { return a & b; }
};
template <class T>
struct bit_or {
  __device__ T operator()(const T& a, const T& b) const { return a | b; }
};
template <class T>
struct bit_xor {
  __device__ T operator()(const T& a, const T& b) const { return a ^ b; }
};

struct thread_block {
  static void sync(SIMT_HERE) { __syncthreads(file, line); }
  static unsigned thread_rank() { return simt::thread_number(); }
  static unsigned num_threads() { return simt::block_threads(); }
  static unsigned size() { return simt::block_threads(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 dim_threads() { return blockDim; }
  static dim3 group_dim() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }
// What tiles of more than 32 threads need on a GPU.
template <unsigned Threads>
struct block_tile_memory {
  char bytes[Threads];
};
template <unsigned Threads>
thread_block this_thread_block(block_tile_memory<Threads>&) {
  return {};
}

struct grid_group {
  static bool is_valid() { return simt::is_cooperative(); }
  static void sync(SIMT_HERE) { simt::grid_sync(file, line); }
  static unsigned long long num_blocks() { return std::uint64_t(gridDim.x) * gridDim.y * gridDim.z; }
  static unsigned long long block_rank() {
    return (std::uint64_t(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  static unsigned long long num_threads() { return num_blocks() * simt::block_threads(); }
  static unsigned long long size() { return num_threads(); }
  static unsigned long long thread_rank() { return block_rank() * simt::block_threads() + simt::thread_number(); }
  static dim3 block_index() { return blockIdx; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 group_dim() { return gridDim; }
};
inline grid_group this_grid() { return {}; }

// The blocks of a cluster; of a launch without clusters, each block alone.
struct cluster_group {
  using arrival_token = struct {};
  static void sync(SIMT_HERE) {
    simt::cluster_arrive(true, file, line);
    simt::cluster_wait(file, line);
  }
  static arrival_token barrier_arrive(SIMT_HERE) {
    simt::cluster_arrive(true, file, line);
    return {};
  }
  static void barrier_wait(SIMT_HERE) { simt::cluster_wait(file, line); }
  static void barrier_wait(arrival_token&&, SIMT_HERE) { simt::cluster_wait(file, line); }
  template <class T>
  static T* map_shared_rank(T* pointer, int rank, SIMT_HERE) {
    return static_cast<T*>(simt::map_shared(const_cast<std::remove_cv_t<T>*>(pointer), unsigned(rank), file, line));
  }
  static unsigned query_shared_rank(const void* pointer) { return simt::shared_rank(pointer); }
  static unsigned block_rank() { return simt::cluster_rank(); }
  static unsigned num_blocks() { return simt::cluster_blocks(); }
  static dim3 block_index() {
    const dim3 of = simt::cluster_dim();
    return {blockIdx.x % of.x, blockIdx.y % of.y, blockIdx.z % of.z};
  }
  static dim3 dim_blocks() { return simt::cluster_dim(); }
  static dim3 dim_threads() {
    const dim3 of = simt::cluster_dim();
    return {of.x * blockDim.x, of.y * blockDim.y, of.z * blockDim.z};
  }
  static dim3 thread_index() {
    const dim3 block = block_index();
    return {block.x * blockDim.x + threadIdx.x, block.y * blockDim.y + threadIdx.y, block.z * blockDim.z + threadIdx.z};
  }
  static unsigned num_threads() { return num_blocks() * simt::block_threads(); }
  static unsigned size() { return num_threads(); }
  static unsigned thread_rank() { return block_rank() * simt::block_threads() + simt::thread_number(); }
};
inline cluster_group this_cluster() { return {}; }

// Some lanes of a warp, by their mask: what tiles and coalesced groups have in common.
class lanes_group {
 public:
  explicit lanes_group(unsigned mask) : mask_(mask) {}

  unsigned num_threads() const { return std::popcount(mask_); }
  unsigned size() const { return num_threads(); }
  unsigned thread_rank() const { return std::popcount(mask_ & ((1u << simt::lane()) - 1)); }
  void sync(SIMT_HERE) const { __syncwarp(mask_, file, line); }
  unsigned mask() const { return mask_; }

  template <class T>
  T shfl(T value, int rank, SIMT_HERE) const {
    return simt::shuffle_any("shfl", mask_, value, simt::lane_of_rank(mask_, unsigned(rank) % size()), file, line);
  }
  template <class T>
  T shfl_up(T value, int delta, SIMT_HERE) const {
    const int from = int(thread_rank()) - delta;
    return simt::shuffle_any("shfl_up", mask_, value, from < 0 ? simt::lane() : simt::lane_of_rank(mask_, from), file,
                             line);
  }
  template <class T>
  T shfl_down(T value, int delta, SIMT_HERE) const {
    const unsigned from = thread_rank() + delta;
    return simt::shuffle_any("shfl_down", mask_, value, from < size() ? simt::lane_of_rank(mask_, from) : simt::lane(),
                             file, line);
  }
  int any(int predicate, SIMT_HERE) const { return __any_sync(mask_, predicate, file, line); }
  int all(int predicate, SIMT_HERE) const { return __all_sync(mask_, predicate, file, line); }
  unsigned ballot(int predicate, SIMT_HERE) const { return by_rank(__ballot_sync(mask_, predicate, file, line)); }
  template <class T>
  unsigned match_any(T value, SIMT_HERE) const {
    return by_rank(__match_any_sync(mask_, value, file, line));
  }
  template <class T>
  unsigned match_all(T value, int& all, SIMT_HERE) const {
    return by_rank(__match_all_sync(mask_, value, &all, file, line));
  }

 private:
  // A bit per lane becomes a bit per rank.
  unsigned by_rank(unsigned lanes) const {
    unsigned ranks = 0, rank = 0;
    for (unsigned rest = mask_; rest != 0; rest &= rest - 1, ++rank)
      ranks |= (lanes >> std::countr_zero(rest) & 1) << rank;
    return ranks;
  }

  unsigned mask_;
};

class coalesced_group : public lanes_group {
 public:
  using lanes_group::lanes_group;
  unsigned meta_group_size() const { return 1; }
  unsigned meta_group_rank() const { return 0; }
};
inline coalesced_group coalesced_threads(SIMT_HERE) {
  return coalesced_group(simt::converged("coalesced_threads", file, line));
}

namespace simt_details {
// The lanes of the calling thread's tile that are in the block.
inline unsigned tile_mask(unsigned size) {
  const unsigned number = simt::thread_number(), warp_lanes = min(32u, simt::block_threads() - number / 32 * 32);
  const unsigned warp = warp_lanes == 32 ? ~0u : (1u << warp_lanes) - 1;
  const unsigned first = number % 32 / size * size;
  return (size >= 32 ? ~0u : ((1u << size) - 1) << first) & warp;
}
// A tile among those of its parent: the block, or a tile that is larger.
template <class Parent>
struct meta_group {
  static unsigned threads() {
    if constexpr (std::is_void_v<Parent> || std::is_same_v<Parent, thread_block>)
      return simt::block_threads();
    else
      return Parent::size();
  }
  static unsigned rank(unsigned tile) { return simt::thread_number() % threads() / tile; }
  static unsigned size(unsigned tile) { return (threads() + tile - 1) / tile; }
};
}  // namespace simt_details

template <unsigned Size, class Parent = void>
class thread_block_tile : public lanes_group {
  static_assert(Size <= 32 && std::has_single_bit(Size));

 public:
  thread_block_tile() : lanes_group(simt_details::tile_mask(Size)) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other>&) : thread_block_tile() {}

  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  static unsigned thread_rank() { return simt::thread_number() % Size; }
  static unsigned meta_group_rank() { return simt_details::meta_group<Parent>::rank(Size); }
  static unsigned meta_group_size() { return simt_details::meta_group<Parent>::size(Size); }

  template <class T>
  T shfl(T value, int rank, SIMT_HERE) const {
    const int lane = simt::lane();
    return simt::shuffle_any("shfl", mask(), value, (lane & -int(Size)) | (rank & int(Size - 1)), file, line);
  }
  template <class T>
  T shfl_xor(T value, int lane_mask, SIMT_HERE) const {
    const int lane = simt::lane(), from = lane ^ lane_mask;
    return simt::shuffle_any("shfl_xor", mask(), value, from / int(Size) == lane / int(Size) ? from : lane, file, line);
  }
};

// Of several warps: what it does together goes through its barrier.
template <unsigned Size, class Parent>
requires(Size > 32) class thread_block_tile<Size, Parent> {
  static_assert(Size <= 1024 && std::has_single_bit(Size));

 public:
  thread_block_tile() = default;
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other>&) {}

  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  static unsigned thread_rank() { return simt::thread_number() % Size; }
  static unsigned meta_group_rank() { return simt_details::meta_group<Parent>::rank(Size); }
  static unsigned meta_group_size() { return simt_details::meta_group<Parent>::size(Size); }
  static void sync(SIMT_HERE) { simt::tile_sync("tile.sync", Size, file, line); }

  template <class T>
  static T shfl(T value, unsigned rank, SIMT_HERE) {
    return together(
        "tile.shfl", value, [=](auto of) { return of(rank % Size); }, file, line);
  }
  static int any(int predicate, SIMT_HERE) {
    return reduce("tile.any", int(predicate != 0), bit_or<int>(), file, line);
  }
  static int all(int predicate, SIMT_HERE) {
    return reduce("tile.all", int(predicate != 0), bit_and<int>(), file, line);
  }
  template <class T, class Op>
  static T reduce(const char* name, T value, Op op, const char* file, int line) {
    const unsigned threads = tile_threads();
    const auto sum = [=](auto of) mutable {
      T all = of(0);
      for (unsigned rank = 1; rank < threads; ++rank) all = op(all, of(rank));
      return all;
    };
    return together(name, value, sum, file, line);
  }
  template <bool inclusive, class T, class Op>
  static T scan(T value, Op op, const char* file, int line) {
    const unsigned until = thread_rank() + inclusive;
    const auto sum = [=](auto of) mutable {
      T all = until > 0 ? of(0) : T();
      for (unsigned rank = 1; rank < until; ++rank) all = op(all, of(rank));
      return all;
    };
    return together(inclusive ? "inclusive_scan" : "exclusive_scan", value, sum, file, line);
  }

 private:
  static unsigned tile_threads() {
    const unsigned first = simt::thread_number() / Size * Size;
    return min(Size, simt::block_threads() - first);
  }
  // Another thread's own variable, which the engine may read.
  template <class T>
  __attribute__((noinline, no_sanitize_thread)) static T operand(const void* of) {
    return *static_cast<const T*>(of);
  }
  // What `compute` makes of all threads' values, by their ranks.
  template <class T, class Compute>
  static T together(const char* name, const T& value, Compute compute, const char* file, int line) {
    simt::set_tile_operand(&value);
    simt::tile_sync(name, Size, file, line);
    const unsigned first = simt::thread_number() - thread_rank();
    const T result = compute([&](unsigned rank) { return operand<T>(simt::tile_operand(first + rank)); });
    simt::tile_sync(name, Size, file, line);
    return result;
  }
};

template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

// A group whose kind is known only at run time: a block or some lanes of a warp.
class thread_group {
 public:
  thread_group(const thread_block&) : lanes_(0) {}
  thread_group(const lanes_group& lanes) : lanes_(lanes) {}

  unsigned num_threads() const { return of_block() ? simt::block_threads() : lanes_.size(); }
  unsigned size() const { return num_threads(); }
  unsigned thread_rank() const { return of_block() ? simt::thread_number() : lanes_.thread_rank(); }
  void sync(SIMT_HERE) const { of_block() ? __syncthreads(file, line) : lanes_.sync(file, line); }
  template <class T>
  T shfl(T value, int rank, SIMT_HERE) const {
    return lanes_.shfl(value, rank, file, line);
  }
  template <class T>
  T shfl_up(T value, int delta, SIMT_HERE) const {
    return lanes_.shfl_up(value, delta, file, line);
  }
  template <class T>
  T shfl_down(T value, int delta, SIMT_HERE) const {
    return lanes_.shfl_down(value, delta, file, line);
  }
  const lanes_group& lanes() const { return lanes_; }
  bool of_block() const { return lanes_.mask() == 0; }

 private:
  lanes_group lanes_;  // none: the block
};

inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
  if (parent.of_block()) return lanes_group(simt_details::tile_mask(size));
  const unsigned mask = parent.lanes().mask(), first = parent.thread_rank() / size * size;
  unsigned part = 0;
  for (unsigned rank = first; rank < min(first + size, parent.size()); ++rank)
    part |= 1u << simt::lane_of_rank(mask, rank);
  return lanes_group(part);
}
inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
  return coalesced_group(tiled_partition(thread_group(parent), size).lanes().mask());
}

template <class Group, class Label>
coalesced_group labeled_partition(const Group& group, Label label, SIMT_HERE) {
  return coalesced_group(__match_any_sync(group.mask(), label, file, line));
}
template <class Group>
coalesced_group binary_partition(const Group& group, bool predicate, SIMT_HERE) {
  return coalesced_group(__match_any_sync(group.mask(), int(predicate), file, line));
}

template <class Group>
void sync(const Group& group, SIMT_HERE) {
  group.sync(file, line);
}
template <class Group>
auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
auto group_size(const Group& group) {
  return group.size();
}

// Like nvcc's: whole numbers in one instruction, all else in steps of shuffles within a tile.
template <class Group, class T, class Op>
T reduce(const Group& group, T value, Op op, SIMT_HERE) {
  if constexpr (!requires { group.mask(); }) {
    return Group::reduce("reduce", value, op, file, line);
  } else {
    if constexpr (requires { group.shfl_xor(value, 1); } && !std::is_integral_v<T>) {
      if (std::popcount(group.mask()) == int(Group::size())) {
        for (int distance = Group::size() / 2; distance > 0; distance /= 2)
          value = op(value, group.shfl_xor(value, distance, file, line));
        return value;
      }
    }
    return simt::group_reduce(group.mask(), value, op, file, line);
  }
}

namespace simt_details {
template <bool inclusive, class Group, class T, class Op>
T scan(const Group& group, T value, Op op, const char* file, int line) {
  if constexpr (requires { group.mask(); })
    return simt::group_scan<inclusive>(group.mask(), value, op, file, line);
  else
    return Group::template scan<inclusive>(value, op, file, line);
}
}  // namespace simt_details

template <class Group, class T, class Op>
T inclusive_scan(const Group& group, T value, Op op, SIMT_HERE) {
  return simt_details::scan<true>(group, value, op, file, line);
}
template <class Group, class T>
T inclusive_scan(const Group& group, T value, SIMT_HERE) {
  return simt_details::scan<true>(group, value, plus<T>(), file, line);
}
template <class Group, class T, class Op>
T exclusive_scan(const Group& group, T value, Op op, SIMT_HERE) {
  return simt_details::scan<false>(group, value, op, file, line);
}
template <class Group, class T>
T exclusive_scan(const Group& group, T value, SIMT_HERE) {
  return simt_details::scan<false>(group, value, plus<T>(), file, line);
}

// One thread of the group calls the function.
template <class Group, class Function, class... Arguments>
void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
  if (group.thread_rank() == 0) function(std::forward<Arguments>(arguments)...);
}

// Copies that the group starts together and waits for together: as cp.async, in the widest pieces that fit.
template <class Group>
__forceinline__ void memcpy_async(const Group& group, void* shared, const void* global, std::size_t bytes) {
  simt::copy_async(shared, global, bytes, group.thread_rank(), group.size(), nullptr);
  simt::cp_async_commit();
}
template <class Group, std::size_t alignment>
__forceinline__ void memcpy_async(const Group& group, void* shared, const void* global,
                                  cuda::aligned_size_t<alignment> bytes) {
  memcpy_async(group, shared, global, bytes.value);
}
template <class Group, class T>
__forceinline__ void memcpy_async(const Group& group, T* shared, std::size_t room, const T* global, std::size_t count) {
  memcpy_async(group, shared, global, (room < count ? room : count) * sizeof(T));
}
template <unsigned Pending, class Group>
void wait_prior(const Group& group, SIMT_HERE) {
  simt::cp_async_wait(Pending, file, line);
  group.sync(file, line);
}
template <class Group>
void wait(const Group& group, SIMT_HERE) {
  wait_prior<0>(group, file, line);
}

}  // namespace cooperative_groups

#undef SIMT_HERE
