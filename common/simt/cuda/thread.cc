// The functions behind thread.h and atomics.h.
#include "simt/cuda/thread.h"

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "simt/cuda/atomics.h"
#include "simt/cuda/groups.h"
#include "simt/cuda/warp.h"
#include "simt/engine/engine.h"
#include "simt/engine/findings.h"
#include "simt/engine/switch.h"

namespace simt {

void* dynamic_shared_memory() { return this_worker("dynamic shared memory").dynamic_shared(); }

int lane() { return static_cast<int>(this_worker("a shuffle").current().lane); }

void warp_collective(const char* name, unsigned mask, void* operand, Compute compute, const char* file, int line) {
  Worker& self = this_worker(name);
  // Matches and reductions tell a lane of all others, as votes do.
  const bool tells = *name == '_' && (std::strncmp(name, "__match", 7) == 0 || std::strncmp(name, "__reduce", 8) == 0);
  if (tells && static_cast<int>(self.current().lane) == std::countr_zero(mask)) self.observe(&Observer::voted);
  make_room(self.collective({name, {file, line, __builtin_return_address(0)}}, mask, operand, compute, true));
}

static_assert(sizeof(Wait) == sizeof(SpaceOfWait));

Turn come_to_barrier(SpaceOfWait& space, const char* file, int line) {
  if (left_out({file, line})) return {};
  constexpr const char* name = "__syncthreads";
  const Wait& wait = *new (&space) Wait{name, {file, line, __builtin_return_address(0)}};
  return this_worker(name).barrier(wait, false);
}

Turn come_to_warp(SpaceOfWait& space, unsigned mask, const char* file, int line) {
  if (left_out({file, line})) return {};
  constexpr const char* name = "__syncwarp";
  const Wait& wait = *new (&space) Wait{name, {file, line, __builtin_return_address(0)}};
  return this_worker(name).collective(wait, mask, nullptr, nullptr, false);
}

void grid_sync(const char* file, int line) {
  if (left_out({file, line})) return;
  this_worker("grid.sync").grid_sync({"grid.sync", {file, line, __builtin_return_address(0)}});
}

unsigned cluster_rank() { return this_worker("a cluster's rank").rank(); }

unsigned cluster_blocks() { return static_cast<unsigned>(this_worker("a cluster's size").cluster().size()); }

dim3 cluster_dim() { return this_worker("a cluster's size").launch().cluster; }

uint3 cluster_index() {
  const dim3 size = cluster_dim();
  return {blockIdx.x / size.x, blockIdx.y / size.y, blockIdx.z / size.z};
}

void cluster_arrive(bool releases, const char* file, int line) {
  if (left_out({file, line})) return;
  const char* const name = releases ? "barrier.cluster.arrive" : "barrier.cluster.arrive.relaxed";
  this_worker(name).cluster_arrive({name, {file, line, __builtin_return_address(0)}}, releases);
}

void cluster_wait(const char* file, int line) {
  if (left_out({file, line})) return;
  this_worker("barrier.cluster.wait").cluster_wait({"barrier.cluster.wait", {file, line, __builtin_return_address(0)}});
}

void* map_shared(const void* pointer, unsigned rank, const char* file, int line) {
  Worker& self = this_worker("mapa");
  const auto wrong = [&](const std::string& what) {
    self.fail(cudaErrorIllegalAddress, &self.current(), text({file, line, __builtin_return_address(0)}),
              "mapa: " + what);
  };
  if (rank >= self.cluster().size())
    wrong("the cluster has no block of rank " + std::to_string(rank) + ", but " +
          std::to_string(self.cluster().size()));
  void* const there = self.map_shared(pointer, rank);
  if (there == nullptr) wrong("the address is not in shared memory");
  return there;
}

unsigned shared_rank(const void* pointer) {
  const Worker& self = this_worker("query_shared_rank");
  const Worker* const block = self.block_with(pointer);
  return block != nullptr ? block->rank() : self.rank();
}

void asks_for_cluster(unsigned x, unsigned y, unsigned z) {
  if (worker != nullptr) worker->asks_for_cluster(dim3(x, y, z));  // else it is a call that learns types
}

void allows_threads(unsigned most, const char* file, int line) {
  if (worker == nullptr) return;  // a call that learns types
  const dim3 block = worker->launch().block;
  if (const unsigned threads = block.x * block.y * block.z; threads > most)
    worker->fail(cudaErrorLaunchOutOfResources, &worker->current(), text({file, line, __builtin_return_address(0)}),
                 "a block has " + std::to_string(threads) + " threads, and the kernel's __launch_bounds__ allow " +
                     std::to_string(most));
}

void undefined(const char* name, const char* what, int value, const char* file, int line) {
  this_worker(name).fail(
      cudaErrorLaunchFailure, &this_worker(name).current(), text({file, line, __builtin_return_address(0)}),
      std::string(name) + ": " + what + " " + std::to_string(value) + ": CUDA leaves the result open");
}

static BlockBarrier::Votes barrier_votes(const Wait& wait, bool predicate) {
  Worker& self = this_worker(wait.name);
  make_room(self.barrier(wait, predicate));
  return self.votes();
}

bool is_cooperative() { return this_worker("is_valid").launch().cooperative; }

unsigned converged(const char* name, const char* file, int line) {
  return this_worker(name).converged({name, {file, line, __builtin_return_address(0)}});
}

void grid_dependency_wait(const char* file, int line) {
  if (left_out({file, line})) return;
  this_worker("a wait for the kernel before").grid_dependency_wait();
}

void named_barrier(const char* name, int number, int threads, bool waits, const char* file, int line) {
  if (left_out({file, line})) return;
  this_worker(name).named_barrier({name, {file, line, __builtin_return_address(0)}}, number, threads, waits);
}

void wait_for_value(const char* name, const int* word, int value, const char* file, int line) {
  if (left_out({file, line})) return;
  this_worker(name).wait_for_value({name, {file, line, __builtin_return_address(0)}}, word, value);
}

namespace {

void compute_shuffle(void* const operands[32], unsigned mask) {
  worker->observe(&Observer::shuffled);
  std::array<std::uint64_t, 32> values = {};
  for (unsigned lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    values[lane] = static_cast<Shuffle*>(operands[lane])->value;
  }
  for (unsigned lanes = mask; lanes != 0; lanes &= lanes - 1) {
    auto& shuffle = *static_cast<Shuffle*>(operands[std::countr_zero(lanes)]);
    shuffle.source_came = mask >> shuffle.source & 1;
    shuffle.value = values[shuffle.source];
  }
}

void compute_vote(void* const operands[32], unsigned mask) {
  worker->observe(&Observer::voted);
  unsigned yes = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) yes |= unsigned(static_cast<Vote*>(operands[lane])->predicate) << lane;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) {
      static_cast<Vote*>(operands[lane])->yes = yes;
      static_cast<Vote*>(operands[lane])->lanes = mask;
    }
}

}  // namespace

Turn come_to_vote(SpaceOfWait& space, Vote& vote, const char* name, unsigned mask, const char* file, int line) {
  const Wait& wait = *new (&space) Wait{name, {file, line, __builtin_return_address(0)}};
  return this_worker(name).collective(wait, mask, &vote, compute_vote, false);
}

Turn come_to_shuffle(SpaceOfWait& space, Shuffle& shuffle, const char* name, unsigned mask, const char* file,
                     int line) {
  const Wait& wait = *new (&space) Wait{name, {file, line, __builtin_return_address(0)}};
  return this_worker(name).collective(wait, mask, &shuffle, compute_shuffle, false);
}

// PTX leaves open what such a lane gets: that matters only if somebody uses it.
std::uint64_t source_missing(const SpaceOfWait& space, const Shuffle& shuffle, unsigned mask) {
  Worker& self = *worker;
  const Wait& wait = reinterpret_cast<const Wait&>(space);
  const std::string at = text(wait.site);
  const auto what = [&] {
    return std::string(wait.name) + " reads the value of lane " + std::to_string(shuffle.source) +
           ", which is not at this shuffle: " + self.absence(shuffle.source, mask);
  };
  if (!watching())
    self.fail(cudaErrorLaunchFailure, &self.current(), at,
              what() + "; every lane that is read must come to the same shuffle");
  static std::mutex mutex;
  static auto& said = *new std::set<std::pair<const void*, std::string>>;
  {
    const std::lock_guard lock(mutex);
    if (said.insert({self.launch().kernel, at}).second)
      noted("kernel " + kernel_name(self.launch().kernel) + ", block " + text(self.index()) + ", thread " +
            text(self.current().index) + ", at " + at + ": " + what() +
            "; what it gets is undefined, and nobody may use it");
  }
  self.observe(&Observer::undefined_shuffle, wait);
  return undefined_by_shuffle;
}

namespace {
void updates(const void* pc, const void* p, std::size_t bytes) {
  if (worker != nullptr && worker->in_kernel()) worker->tell_of_whole_access(pc, p, bytes, Access::atomic);
}
}  // namespace

float atomic_add(float* p, float v) {
  updates(__builtin_return_address(0), p, sizeof(float));
  if (owns(p)) return std::exchange(*p, *p + v);
  return std::atomic_ref<float>(*p).fetch_add(v, std::memory_order_relaxed);
}

void atomic_add_4(float* p, const float* x) {
  updates(__builtin_return_address(0), p, 4 * sizeof(float));
  for (int i = 0; i < 4; ++i) std::atomic_ref<float>(p[i]).fetch_add(x[i], std::memory_order_relaxed);
}

void matrix_product(std::uint64_t flops) { this_worker("mma").observe(&Observer::matrix_product, flops); }

}  // namespace simt

int __syncthreads_count(int predicate, const char* file, int line) {
  return simt::barrier_votes({"__syncthreads_count", {file, line, __builtin_return_address(0)}}, predicate != 0).yes;
}

int __syncthreads_and(int predicate, const char* file, int line) {
  const auto votes =
      simt::barrier_votes({"__syncthreads_and", {file, line, __builtin_return_address(0)}}, predicate != 0);
  return votes.yes == votes.threads;
}

int __syncthreads_or(int predicate, const char* file, int line) {
  return simt::barrier_votes({"__syncthreads_or", {file, line, __builtin_return_address(0)}}, predicate != 0).yes > 0;
}

unsigned __activemask(const char* file, int line) { return simt::converged("__activemask", file, line); }

long long clock64() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
