// How threads run: fibers switch directly to one another at barriers and collectives. A thread that waits looks for
// the next one that can run, in its own warp first, and switches to it. When there is none left and threads still
// wait, that is a deadlock.
#include "simt/engine.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <exception>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

constinit thread_local uint3 threadIdx = {};
constinit thread_local uint3 blockIdx = {};
constinit thread_local dim3 blockDim = {};
constinit thread_local dim3 gridDim = {};

namespace simt {

constinit thread_local Worker* worker = nullptr;

namespace {

[[noreturn]] void outside_a_kernel(const char* name) {
  throw std::logic_error(std::string(name) + " called outside a kernel");
}

inline Worker& this_worker(const char* name) {
  if (worker == nullptr || !worker->in_kernel()) outside_a_kernel(name);
  return *worker;
}
}  // namespace

// A warp's worth of fibers, each with a guard below its stack.
void Worker::make_fibers() {
  constexpr int count = 32;
  constexpr std::size_t each = guard_bytes + stack_bytes;
  void* memory =
      mmap(nullptr, count * each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const auto refuse = [this] {
    fail(cudaErrorLaunchOutOfResources, nullptr, "", "no memory for the stacks of this block's threads");
  };
  if (memory == MAP_FAILED) refuse();
  for (int i = 0; i < count; ++i) {
    auto fiber = std::make_unique<Fiber>();
    char* guard = static_cast<char*>(memory) + i * each;
    if (mprotect(guard, guard_bytes, PROT_NONE) != 0) refuse();
    fiber->stack = guard + guard_bytes;
    // Stack tops at the same offset of every page would share a few lines of the first-level cache.
    fiber->size = stack_bytes - i * 128;
    fibers_.push_back(std::move(fiber));
    idle_.push_back(fibers_.back().get());
  }
}

// Forgets what runs on the fibers.
void Worker::reset_fibers() {
  idle_.clear();
  for (auto& fiber : fibers_) {
    fiber->context = nullptr;
    fiber->thread = nullptr;
    idle_.push_back(fiber.get());
  }
}

void Worker::run(Launch& launch) {
  static thread_local const SignalStack signal_stack;
  if (owner_ != std::this_thread::get_id()) reset_fibers();  // code on them may hold thread_local addresses
  owner_ = std::this_thread::get_id();
  launch_ = &launch;
  worker = this;
  const int landed = sigsetjmp(landing_, 1);
  if (landed == 0) {
    prepare(launch);
    while (!launch.failed.load(std::memory_order_relaxed)) {
      const std::uint64_t i = launch.next_block.fetch_add(1, std::memory_order_relaxed);
      if (i >= launch.blocks) break;
      run_block(i);
    }
    if (!launch.failed) recorder_.launch_ends();
  } else {
    if (landed == faulted) explain_fault();
    reset_fibers();
  }
  current_ = nullptr;
  worker = nullptr;
  launch_ = nullptr;
}

void Worker::prepare(Launch& launch) {
  shared_.prepare(launch.module, launch.shared_bytes);
  blockDim = launch.block;
  gridDim = launch.grid;
  order_threads(0);
  recorder_.launch_begins(launch, shared_);
}

// Lays the block's threads out in the order in which they shall run.
void Worker::order_threads(std::uint64_t seed) {
  const dim3 block = launch_->block;
  const unsigned count = block.x * block.y * block.z;
  warp_count_ = (count + 31) / 32;
  std::minstd_rand random(static_cast<unsigned>(mix(seed)) | 1);
  const auto arrange = [&](auto first, auto last) {
    std::iota(first, last, 0u);
    if (launch_->schedule.order == Order::reverse) std::reverse(first, last);
    if (launch_->schedule.order == Order::shuffled) std::shuffle(first, last, random);
  };
  std::array<unsigned, max_warps> warp_order;
  std::array<unsigned, 32> lane_order;
  arrange(warp_order.begin(), warp_order.begin() + warp_count_);
  for (unsigned w = 0; w < warp_count_; ++w) {
    Warp& warp = warps_[w];
    warp.number = warp_order[w];
    const unsigned lanes = std::min(32u, count - warp.number * 32);
    arrange(lane_order.begin(), lane_order.begin() + lanes);
    warp.lanes.fill(nullptr);
    for (unsigned position = 0; position < lanes; ++position) {
      Thread& thread = threads_[w * 32 + position];
      const unsigned linear = warp.number * 32 + lane_order[position];
      thread.index = {linear % block.x, linear / block.x % block.y, linear / block.x / block.y};
      thread.number = linear;
      thread.lane = lane_order[position];
      thread.warp = w;
      thread.position = position;
      warp.lanes[thread.lane] = &thread;
    }
  }
}

void Worker::run_block(std::uint64_t i) {
  std::uint64_t block = i;
  if (launch_->schedule.order == Order::reverse) block = launch_->blocks - 1 - i;
  if (launch_->schedule.order == Order::shuffled) {
    block = static_cast<std::uint64_t>((static_cast<unsigned __int128>(i) * launch_->stride + launch_->offset) %
                                       launch_->blocks);
    order_threads(launch_->schedule.seed * 0x9e3779b97f4a7c15 + block);
  }
  const dim3 grid = launch_->grid;
  blockIdx = {static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
              static_cast<unsigned>(block / grid.x / grid.y)};
  shared_.poison();
  recorder_.block_begins();

  live_ = 0;
  arrived_ = 0;
  divergent_ = false;
  yes_ = 0;
  for (NamedBarrier& barrier : named_barriers_) {
    barrier.arrived = 0;
    barrier.waiting.clear();
  }
  for (unsigned w = 0; w < warp_count_; ++w) {
    Warp& warp = warps_[w];
    const unsigned first = warp.number * 32;
    const unsigned lanes = std::min(32u, launch_->block.x * launch_->block.y * launch_->block.z - first);
    live_ += lanes;
    warp.ready = warp.live = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.at_barrier = 0;
    warp.collectives_used = 0;
    warp.operands.fill(nullptr);
    for (unsigned position = 0; position < lanes; ++position) threads_[w * 32 + position].fiber = nullptr;
  }
  warps_ready_ = warp_count_ == 32 ? ~0u : (1u << warp_count_) - 1;

  if (idle_.empty()) make_fibers();
  Thread& first = *next(0);
  start_on_a_fiber(first);
  resume(main_, *first.fiber);
}

// The thread to run next, now no longer ready and the current one: of this warp if one can run, else of the first
// warp in the schedule that has one. Null if there is none.
__forceinline__ Thread* Worker::next(unsigned w) {
  if (warps_[w].ready == 0) {
    if (warps_ready_ == 0) return nullptr;
    w = std::countr_zero(warps_ready_);
  }
  Warp& warp = warps_[w];
  const unsigned position = std::countr_zero(warp.ready);
  warp.ready &= warp.ready - 1;
  if (warp.ready == 0) warps_ready_ &= ~(1u << w);
  Thread& thread = threads_[w * 32 + position];
  current_ = &thread;
  threadIdx = thread.index;
  return &thread;
}

void Worker::start_on_a_fiber(Thread& thread) {
  if (idle_.empty()) make_fibers();
  Fiber& fiber = *idle_.back();
  idle_.pop_back();
  if (fiber.context == nullptr)
    fiber.context = context::make_fcontext(fiber.stack + fiber.size, fiber.size, fiber_main);
  fiber.thread = &thread;
  thread.fiber = &fiber;
}

// Leaves `self` for `other`. On the way to a switch every function is inlined: the processor predicts returns from a
// stack of its own, which knows nothing of fibers, so each level of calls above a switch costs a wrong prediction.
// Whoever comes back says which fiber it left, so that its context can be kept.
__forceinline__ void Worker::resume(Fiber& self, Fiber& other) {
  const context::transfer_t from = context::jump_fcontext(other.context, &self);
  static_cast<Fiber*>(from.data)->context = from.fctx;
}

void Worker::fiber_main(context::transfer_t from) {
  static_cast<Fiber*>(from.data)->context = from.fctx;
  Worker& self = *worker;
  Fiber& fiber = *self.current_->fiber;
  for (;;) {
    self.run_current();
    fiber.thread = nullptr;
    Thread* next = self.finish();
    if (next != nullptr && next->fiber == nullptr) {
      next->fiber = &fiber;
      fiber.thread = next;
      continue;
    }
    self.idle_.push_back(&fiber);
    self.resume(fiber, next ? *next->fiber : self.main_);
  }
}

void Worker::run_current() {
  Thread& thread = *current_;
  thread.named_barrier = 0;
  thread.grid_awaited = !launch_->dependent;
  thread.copies.forget();
  std::string mistake, at;
  try {
    launch_->body();
    if (const Copy* copy = thread.copies.oldest(); tracing && copy != nullptr) {
      void* stack[] = {static_cast<char*>(const_cast<void*>(copy->pc)) - 1};
      at = source_line(stack);
      mistake = "the thread returned without having waited for this cp.async";
    } else if (!thread.grid_awaited) {
      mistake = "the thread of a dependent launch returned without having waited for the kernel before";
    } else {
      return;
    }
  } catch (const std::exception& e) {
    mistake = std::string("the kernel threw an exception: ") + e.what();
  } catch (...) {
    mistake = "the kernel threw an exception";
  }
  fail(cudaErrorLaunchFailure, &thread, at, mistake);  // not inside the handler, which has to end first
}

// The current thread has returned. The next one, null if it was the block's last.
Thread* Worker::finish() {
  Thread& thread = *current_;
  Warp& warp = warps_[thread.warp];
  thread.fiber = nullptr;
  warp.live &= ~(1u << thread.lane);
  --live_;
  if (warp.live == 0) recorder_.meet(warp.number, ~0u, false);
  for (unsigned used = warp.collectives_used; used != 0; used &= used - 1) {
    const unsigned slot = std::countr_zero(used);
    const Collective& collective = warp.collectives[slot];
    if ((collective.mask & warp.live & ~collective.arrived) == 0) complete(warp, slot);
  }
  if (live_ == 0) {
    current_ = nullptr;
    return nullptr;
  }
  const bool last = arrived_ == live_;
  if (last) release_barrier();
  Thread* following = next(last ? first_ready_warp() : thread.warp);
  if (following == nullptr) deadlock();
  return following;
}

// The current thread waits: others run, of that warp first, until this one is ready and its turn has come.
__forceinline__ void Worker::suspend(unsigned next_warp) {
  Thread& self = *current_;
  Thread* following = next(next_warp);
  if (following == &self) return;
  if (following == nullptr) deadlock();
  if (following->fiber == nullptr) start_on_a_fiber(*following);
  resume(*self.fiber, *following->fiber);
}

__forceinline__ Worker::Votes Worker::barrier(bool predicate, const Site& site) {
  Thread& self = *current_;
  self.site = site;
  if (arrived_ == 0)
    barrier_site_ = site;
  else if (site.line != barrier_site_.line || site.file != barrier_site_.file)
    divergent_ |= !(site == barrier_site_);
  ++arrived_;
  yes_ += predicate;
  warps_[self.warp].at_barrier |= 1u << self.position;
  const bool last = arrived_ == live_;
  if (last) release_barrier();
  suspend(last ? first_ready_warp() : self.warp);  // after a barrier the schedule starts over
  return votes_;
}

void Worker::release_barrier() {
  if (divergent_)
    fail(cudaErrorLaunchFailure, nullptr, "",
         "barrier divergence: the threads of the block wait at different barriers: " + waiting_threads());
  recorder_.barrier();
  votes_ = {yes_, static_cast<int>(arrived_)};
  yes_ = 0;
  arrived_ = 0;
  for (unsigned w = 0; w < warp_count_; ++w) {
    Warp& warp = warps_[w];
    if (warp.at_barrier == 0) continue;
    warp.ready |= warp.at_barrier;
    warp.at_barrier = 0;
    warps_ready_ |= 1u << w;
  }
}

void Worker::named_barrier(const char* name, int number, int threads, bool waits, const Site& site) {
  Thread& self = *current_;
  self.site = site;
  const auto wrong = [&](const std::string& what) {
    fail(cudaErrorLaunchFailure, &self, text(site),
         std::string(name) + " on barrier " + std::to_string(number) + " for " + std::to_string(threads) +
             " threads: " + what);
  };
  if (number < 1 || number > 15) wrong("the number must be 1 to 15");
  if (threads < 32 || threads % 32 != 0) wrong("the threads must be a multiple of 32");
  NamedBarrier& barrier = named_barriers_[number];
  if (barrier.arrived == 0) barrier.threads = threads;
  if (barrier.threads != threads)
    wrong(std::to_string(barrier.arrived) + " have come to it that expect " + std::to_string(barrier.threads));
  ++barrier.arrived;
  recorder_.arrive(number);
  if (waits) {
    self.named_barrier = number;
    barrier.waiting.push_back(&self);
  }
  if (barrier.arrived == barrier.threads) {
    std::vector<unsigned> released;
    for (Thread* thread : barrier.waiting) {
      released.push_back(thread->number);
      thread->named_barrier = 0;
      warps_[thread->warp].ready |= 1u << thread->position;
      warps_ready_ |= 1u << thread->warp;
    }
    recorder_.release(number, released);
    barrier.arrived = 0;
    barrier.waiting.clear();
  }
  if (waits) suspend(self.warp);
}

void Worker::wait_for_another_block(const int* word, int value, const Site& site) {
  const auto start = std::chrono::steady_clock::now();
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
    if (launch_->failed) siglongjmp(landing_, failed);  // perhaps in the block that this one waits for
    if (std::chrono::steady_clock::now() - start > std::chrono::minutes(1))
      fail(cudaErrorLaunchTimeout, current_, text(site),
           "has waited a minute for another block: a block may wait only for those that started before it");
    std::this_thread::yield();
  }
}

__forceinline__ void Worker::collective(const char* name, unsigned mask, void* operand, Compute compute,
                                        bool all_must_come, const Site& site) {
  Thread& self = *current_;
  Warp& warp = warps_[self.warp];
  const unsigned bit = 1u << self.lane;
  self.site = site;
  if (!(mask & bit)) not_in_mask(name, mask);

  unsigned slot = 32;
  for (unsigned used = warp.collectives_used; used != 0; used &= used - 1)
    if (warp.collectives[std::countr_zero(used)].mask == mask) slot = std::countr_zero(used);
  if (slot == 32) {
    slot = std::countr_one(warp.collectives_used);
    warp.collectives_used |= 1u << slot;
    warp.collectives[slot] = {mask, 0, name, compute, all_must_come};
  }
  Collective& collective = warp.collectives[slot];
  if (collective.compute != compute || (collective.name != name && std::strcmp(collective.name, name) != 0))
    different_collectives(warp, collective, name);
  warp.operands[self.lane] = operand;
  collective.arrived |= bit;
  if ((mask & warp.live & ~collective.arrived) == 0) complete(warp, slot);
  suspend(self.warp);
}

// Every lane that can come to a collective has: computes it and lets them go.
void Worker::complete(Warp& warp, unsigned slot) {
  const Collective collective = warp.collectives[slot];
  if (collective.all_must_come && collective.arrived != collective.mask) {
    const Thread& first = *warp.lanes[std::countr_zero(collective.arrived)];
    fail(cudaErrorLaunchFailure, &first, text(first.site),
         std::string(collective.name) + " waits for lanes that never come: " + lanes_text(collective.arrived) +
             " of warp " + std::to_string(warp.number) + " wait, " + returned_lanes(warp, collective.mask));
  }
  warp.collectives_used &= ~(1u << slot);
  std::array<void*, 32> operands = {};
  for (unsigned lanes = collective.arrived; lanes != 0; lanes &= lanes - 1) {
    const unsigned lane = std::countr_zero(lanes);
    operands[lane] = std::exchange(warp.operands[lane], nullptr);
    warp.ready |= 1u << warp.lanes[lane]->position;
  }
  warps_ready_ |= 1u << (&warp - warps_.data());
  recorder_.meet(warp.number, collective.arrived, collective.compute == nullptr);
  if (collective.compute == nullptr) return;
  recorder_.pause();
  collective.compute(operands.data(), collective.arrived);
  recorder_.resume();
}

void Worker::copy(void* shared, const void* global, unsigned bytes, unsigned source_bytes, const void* pc) {
  current_->copies.start({shared, global, bytes, source_bytes, current_->number, pc}, recorder_);
}

void* dynamic_shared_memory() { return this_worker("dynamic shared memory").dynamic_shared(); }

int lane() { return static_cast<int>(this_worker("a shuffle").current().lane); }

void warp_collective(const char* name, unsigned mask, void* operand, Compute compute, const char* file, int line) {
  this_worker(name).collective(name, mask, operand, compute, true, {file, line, __builtin_return_address(0)});
}

void grid_dependency_wait() { this_worker("a wait for the kernel before").grid_dependency_wait(); }

void named_barrier(const char* name, int number, int threads, bool waits, const char* file, int line) {
  this_worker(name).named_barrier(name, number, threads, waits, {file, line, __builtin_return_address(0)});
}

void wait_for_another_block(const int* word, int value, const char* file, int line) {
  this_worker("a wait for another block")
      .wait_for_another_block(word, value, {file, line, __builtin_return_address(0)});
}

namespace {
struct Shuffle {
  std::uint64_t value;
  int source;
  bool source_came;
};

void compute_shuffle(void* const operands[32], unsigned mask) {
  worker->recorder().shuffle();
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

struct Vote {
  bool predicate;
  unsigned yes;
  unsigned lanes;
};

void compute_vote(void* const operands[32], unsigned mask) {
  unsigned yes = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) yes |= unsigned(static_cast<Vote*>(operands[lane])->predicate) << lane;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) {
      static_cast<Vote*>(operands[lane])->yes = yes;
      static_cast<Vote*>(operands[lane])->lanes = mask;
    }
}

Vote vote(const char* name, unsigned mask, bool predicate, const Site& site) {
  Vote vote = {predicate, 0, 0};
  this_worker(name).collective(name, mask, &vote, compute_vote, false, site);
  return vote;
}
}  // namespace

std::uint64_t shuffle(const char* name, unsigned mask, std::uint64_t value, int source, const char* file, int line) {
  Worker& self = this_worker(name);
  const Site site = {file, line, __builtin_return_address(0)};
  Shuffle shuffle = {value, source, false};
  self.collective(name, mask, &shuffle, compute_shuffle, false, site);
  if (!shuffle.source_came)
    self.fail(cudaErrorLaunchFailure, &self.current(), text(site),
              std::string(name) + " reads lane " + std::to_string(source) +
                  ", which has returned or is not in the mask or the block");
  return shuffle.value;
}

void cp_async(void* shared, const void* global, std::size_t bytes, std::size_t source_bytes) {
  Worker& self = this_worker("cp.async");
  void* stack[] = {static_cast<char*>(__builtin_return_address(0)) - 1};
  if ((bytes != 4 && bytes != 8 && bytes != 16) || source_bytes > bytes)
    self.fail(cudaErrorLaunchFailure, &self.current(), source_line(stack),
              "cp.async of " + std::to_string(bytes) + " bytes, " + std::to_string(source_bytes) +
                  " of them from memory: must be 4, 8 or 16, and no more from memory than that");
  if (reinterpret_cast<std::uintptr_t>(shared) % bytes != 0 || reinterpret_cast<std::uintptr_t>(global) % bytes != 0)
    self.fail(cudaErrorMisalignedAddress, &self.current(), source_line(stack),
              "cp.async of " + std::to_string(bytes) + " bytes: an address is not a multiple of that");
  self.copy(shared, global, static_cast<unsigned>(bytes), static_cast<unsigned>(source_bytes),
            __builtin_return_address(0));
}

namespace {

// An atomic update by the kernel at `pc`.
void note_update([[maybe_unused]] const void* pc, [[maybe_unused]] const void* p, [[maybe_unused]] std::size_t bytes) {
#ifdef WORKBOOK_TRACE
  if (worker != nullptr && worker->in_kernel()) worker->recorder().access(pc, p, bytes, Access::atomic);
#endif
}

}  // namespace

float atomic_add(float* p, float v) {
  note_update(__builtin_return_address(0), p, sizeof(float));
  return std::atomic_ref<float>(*p).fetch_add(v, std::memory_order_relaxed);
}

void atomic_add_4(float* p, const float* x) {
  note_update(__builtin_return_address(0), p, 4 * sizeof(float));
  for (int i = 0; i < 4; ++i) std::atomic_ref<float>(p[i]).fetch_add(x[i], std::memory_order_relaxed);
}

#ifdef WORKBOOK_TRACE
void ldmatrix_row(const void* row) { this_worker("ldmatrix").recorder().ldmatrix_row(__builtin_return_address(0), row); }

void matrix_product(std::uint64_t flops) { this_worker("mma").recorder().matrix_product(flops); }
#endif

void cp_async_commit() { this_worker("cp.async").commit_copies(); }

void cp_async_wait(int pending_groups) { this_worker("cp.async").wait_for_copies(pending_groups); }

}  // namespace simt

void __syncthreads(const char* file, int line) {
  simt::this_worker("__syncthreads").barrier(false, {file, line, __builtin_return_address(0)});
}

int __syncthreads_count(int predicate, const char* file, int line) {
  return simt::this_worker("__syncthreads_count")
      .barrier(predicate != 0, {file, line, __builtin_return_address(0)})
      .yes;
}

int __syncthreads_and(int predicate, const char* file, int line) {
  const auto votes =
      simt::this_worker("__syncthreads_and").barrier(predicate != 0, {file, line, __builtin_return_address(0)});
  return votes.yes == votes.threads;
}

int __syncthreads_or(int predicate, const char* file, int line) {
  return simt::this_worker("__syncthreads_or").barrier(predicate != 0, {file, line, __builtin_return_address(0)}).yes >
         0;
}

void __syncwarp(unsigned mask, const char* file, int line) {
  simt::this_worker("__syncwarp")
      .collective("__syncwarp", mask, nullptr, nullptr, false, {file, line, __builtin_return_address(0)});
}

unsigned __ballot_sync(unsigned mask, int predicate, const char* file, int line) {
  return simt::vote("__ballot_sync", mask, predicate != 0, {file, line, __builtin_return_address(0)}).yes;
}

int __all_sync(unsigned mask, int predicate, const char* file, int line) {
  const auto vote = simt::vote("__all_sync", mask, predicate != 0, {file, line, __builtin_return_address(0)});
  return vote.yes == vote.lanes;
}

int __any_sync(unsigned mask, int predicate, const char* file, int line) {
  return simt::vote("__any_sync", mask, predicate != 0, {file, line, __builtin_return_address(0)}).yes != 0;
}

unsigned __activemask() { return simt::this_worker("__activemask").live_lanes(); }

long long clock64() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
