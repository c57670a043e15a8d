// How threads run: fibers switch directly to one another where they have to wait. A thread that waits looks for the
// next one that can run, in its own warp first, and switches to it. When there is none left, and no other block that
// could let one go, that is a deadlock.
#include "simt/engine.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <exception>
#include <numeric>
#include <random>
#include <utility>

#include "simt/atomics.h"
#include "simt/groups.h"
#include "simt/warp.h"

constinit thread_local uint3 threadIdx = {};
constinit thread_local uint3 blockIdx = {};
constinit thread_local dim3 blockDim = {};
constinit thread_local dim3 gridDim = {};

namespace simt {

constinit thread_local Worker* worker = nullptr;

Worker::Worker() {
  for (std::size_t number = 0; number < named_barriers_.size(); ++number)
    named_barriers_[number].number = static_cast<int>(number);
}

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
  ++launch.workers;
  worker = this;
  const int landed = sigsetjmp(landing_, 1);
  if (landed == 0) {
    prepare(launch);
    runs(true);
    while (!launch.failed.load(std::memory_order_relaxed)) {
      const std::uint64_t i = launch.next_block.fetch_add(1, std::memory_order_relaxed);
      if (i >= launch.blocks) break;
      run_block(i);
      launch.pace.block_done(launch);
    }
    if (!parked_.empty()) run_parked_blocks();
    if (!launch.failed) recorder_.launch_ends();
  } else {
    if (landed == faulted) explain_fault();
    if (landed == overdue) explain_overdue();
    launch.goes_on(*this);
    reset_fibers();
  }
  runs(false);
  current_ = nullptr;
  worker = nullptr;
  --launch.workers;
  launch_ = nullptr;
}

void Worker::runs(bool now) {
  const std::lock_guard lock(overseen_);
  runs_ = now;
  os_thread_ = pthread_self();
}

void Worker::prepare(Launch& launch) {
  shared_.prepare(launch.module, launch.shared_bytes);
  blockDim = launch.block;
  gridDim = launch.grid;
  order_threads(0);
  recorder_.launch_begins(launch, shared_);
  parked_.clear();
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
      thread.index = index_of(linear, block);
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
  barrier_.starts_over();
  grid_barrier_.starts_over();
  for (; named_barriers_used_ != 0; named_barriers_used_ &= named_barriers_used_ - 1)
    named_barriers_[std::countr_zero(named_barriers_used_)].starts_over();
  words_.clear();
  hopper_.block_begins();
  for (unsigned w = 0; w < warp_count_; ++w) {
    Warp& warp = warps_[w];
    const unsigned first = warp.number * 32;
    const unsigned lanes = std::min(32u, launch_->block.x * launch_->block.y * launch_->block.z - first);
    live_ += lanes;
    warp.ready = warp.live = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.collectives_used = warp.converging = 0;
    warp.operands.fill(nullptr);
    for (unsigned position = 0; position < lanes; ++position) threads_[w * 32 + position].fiber = nullptr;
  }
  warps_ready_ = warp_count_ == 32 ? ~0u : (1u << warp_count_) - 1;

  if (idle_.empty()) make_fibers();
  Thread& first = *next(0);
  start_on_a_fiber(first);
  resume(main_, *first.fiber);
  if (live_ != 0) park();
}

// Keeps the block as it is. Its shared memory has addresses that the next block's has, too.
void Worker::park() {
  auto block = std::make_unique<ParkedBlock>();
  block->index = blockIdx;
  block->site = grid_barrier_.site;
  block->live = live_;
  block->warps_ready = warps_ready_;
  block->warps = warps_;
  block->threads = std::exchange(threads_, std::vector<Thread>(max_block_threads));
  for (const auto& [begin, bytes] : shared_.ranges()) block->shared.insert(block->shared.end(), begin, begin + bytes);
  block->hopper = std::exchange(hopper_, {});
  recorder_.park(block->recorded);
  parked_.push_back(std::move(block));
  order_threads(0);
}

void Worker::unpark(ParkedBlock& block) {
  blockIdx = block.index;
  live_ = block.live;
  warps_ready_ = block.warps_ready;
  warps_ = block.warps;
  threads_.swap(block.threads);
  const char* from = block.shared.data();
  for (const auto& [begin, bytes] : shared_.ranges()) {
    std::memcpy(begin, from, bytes);
    from += bytes;
  }
  hopper_ = std::move(block.hopper);
  recorder_.unpark(block.recorded);
  barrier_.starts_over();
  grid_barrier_.starts_over();
}

// All blocks have come to the grid's barrier, or returned: from one such barrier to the next.
void Worker::run_parked_blocks() {
  while (!parked_.empty()) {
    if (parked_.size() != launch_->blocks) blocks_never_come();
    for (auto& block : std::exchange(parked_, {})) {
      unpark(*block);
      Thread& first = *next(first_ready_warp());
      resume(main_, *first.fiber);
      if (live_ != 0) park();
    }
  }
}

void Worker::blocks_never_come() {
  current_ = nullptr;
  blockIdx = parked_.front()->index;
  fail(cudaErrorLaunchTimeout, nullptr, "",
       "deadlock: " + std::to_string(parked_.size()) + " of " + std::to_string(launch_->blocks) +
           " blocks wait in grid.sync at " + text(parked_.front()->site) + ", and the others have returned");
}

// The thread to run next, now no longer ready and the current one: of this warp if one can run, else of the first
// warp in the schedule that has one. Null if there is none.
__forceinline__ Thread* Worker::next(unsigned w) {
  if (warps_[w].ready == 0) {
    if (warps_[w].converging != 0) return next_after_converging(w);
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
  next_turn();
  return &thread;
}

// No lane of the warp can go on: lets those go that wait for each other only as long as one can.
Thread* Worker::next_after_converging(unsigned w) {
  Warp& warp = warps_[w];
  for (unsigned rest = std::exchange(warp.converging, 0); rest != 0; rest &= rest - 1)
    complete(warp, warp.collectives[std::countr_zero(rest)]);
  return next(w);
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
  thread.wait = nullptr;
  thread.kernel_before_awaited = !launch_->dependent;
  thread.copies.forget();
  std::string mistake, at;
  try {
    launch_->body();
    if (hopper_.used) hopper_.thread_ends(*this);
    if (const Copy* copy = thread.copies.oldest(); tracing && copy != nullptr) {
      void* stack[] = {static_cast<char*>(const_cast<void*>(copy->pc)) - 1};
      at = source_line(stack);
      mistake = "the thread returned without having waited for this cp.async";
    } else if (!thread.kernel_before_awaited) {
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
  if (warp.live == 0) recorder_.warp_ends(warp.number);
  for (unsigned used = warp.collectives_used; used != 0; used &= used - 1) {
    Collective& collective = warp.collectives[std::countr_zero(used)];
    if (collective.mask != 0 && (collective.mask & warp.live & ~collective.arrived) == 0) complete(warp, collective);
  }
  if (live_ == 0) {
    if (hopper_.used) hopper_.block_ends(*this);
    recorder_.block_ends();
    current_ = nullptr;
    return nullptr;
  }
  const bool last = barrier_.arrived == live_;
  if (last) release_barrier();
  Thread* following = next(last ? first_ready_warp() : thread.warp);
  return following != nullptr ? following : next_by_another_block();
}

// The current thread waits from now on: until this is released and its turn has come.
__forceinline__ void Worker::begin_wait(const Wait& wait, const Awaited& awaited) {
  Thread& self = *current_;
  self.wait = &wait;
  self.awaited = &awaited;
}

// Others run, of that warp first, until the current thread's turn has come: it waits, or has just been let go.
__forceinline__ void Worker::suspend(unsigned next_warp) {
  Thread& self = *current_;
  Thread* following = next(next_warp);
  if (following == nullptr) following = next_by_another_block();
  if (following != &self) {
    if (following != nullptr && following->fiber == nullptr) start_on_a_fiber(*following);
    resume(*self.fiber, following != nullptr ? *following->fiber : main_);
  }
  self.wait = nullptr;
}

// Lets those go that wait for this.
__forceinline__ void Worker::release(const Awaited& awaited, ThreadSet& waiting) {
  recorder_.let_go(awaited.orders, &awaited, waiting);
  for (unsigned warps = waiting.warps; warps != 0; warps &= warps - 1) {
    const unsigned w = std::countr_zero(warps);
    warps_[w].ready |= std::exchange(waiting.positions[w], 0);
  }
  warps_ready_ |= std::exchange(waiting.warps, 0);
}

// The current thread goes on at once, because there is nothing to wait for.
void Worker::pass(Orders orders, const void* what) {
  ThreadSet self;
  self.add(current_->warp, current_->position);
  recorder_.let_go(orders, what, self);
}

void Worker::wait_for(const Wait& wait, const Awaited& awaited, ThreadSet& waiting) {
  begin_wait(wait, awaited);
  waiting.add(current_->warp, current_->position);
  suspend(current_->warp);
}

void Worker::let_go(const Awaited& awaited, ThreadSet& waiting) { release(awaited, waiting); }

// No thread of the block can run, but some wait for what another block has to write: the next one to run when it has.
// Null if all wait for the other blocks of the grid.
Thread* Worker::next_by_another_block() {
  if (grid_barrier_.arrived == live_) {
    release(grid_barrier_, grid_barrier_.waiting);
    return nullptr;
  }
  if (words_.empty()) deadlock();
  launch_->holds_up(*this);
  Word* written = nullptr;
  while ((written = written_word()) == nullptr) {
    if (launch_->all_held_up()) deadlock();
    next_turn();
    std::this_thread::yield();
  }
  launch_->goes_on(*this);
  std::erase(words_, written);
  release(*written, written->waiting);
  return next(first_ready_warp());
}

Word* Worker::written_word() const {
  const auto found = std::find_if(words_.begin(), words_.end(), [](const Word* word) { return word->written(); });
  return found != words_.end() ? *found : nullptr;
}

__forceinline__ BlockBarrier::Votes Worker::barrier(const Wait& wait, bool predicate) {
  const Thread& self = *current_;
  const Site& site = wait.site;
  begin_wait(wait, barrier_);
  barrier_.waiting.add(self.warp, self.position);
  if (barrier_.arrived == 0)
    barrier_.site = site;
  else if (site.line != barrier_.site.line || site.file != barrier_.site.file)
    barrier_.divergent |= !(site == barrier_.site);
  ++barrier_.arrived;
  barrier_.yes += predicate;
  const bool last = barrier_.arrived == live_;
  if (last) release_barrier();
  suspend(last ? first_ready_warp() : self.warp);  // after a barrier the schedule starts over
  return barrier_.votes;
}

void Worker::release_barrier() {
  if (barrier_.divergent)
    fail(cudaErrorLaunchFailure, nullptr, "",
         "barrier divergence: the threads of the block wait at different barriers: " + who_waits());
  barrier_.votes = {barrier_.yes, static_cast<int>(barrier_.arrived)};
  barrier_.yes = 0;
  barrier_.arrived = 0;
  release(barrier_, barrier_.waiting);
}

void Worker::named_barrier(const Wait& wait, int number, int threads, bool waits) {
  Thread& self = *current_;
  const auto wrong = [&](const std::string& what) {
    fail(cudaErrorLaunchFailure, &self, text(wait.site),
         std::string(wait.name) + " on barrier " + std::to_string(number) + " for " + std::to_string(threads) +
             " threads: " + what);
  };
  if (number < 1 || number > 15) wrong("the number must be 1 to 15");
  if (threads < 32 || threads % 32 != 0) wrong("the threads must be a multiple of 32");
  NamedBarrier& barrier = named_barriers_[number];
  named_barriers_used_ |= 1u << number;
  if (barrier.arrived == 0) barrier.threads = threads;
  if (barrier.threads != threads) {
    const std::string others = who_waits(&barrier);
    wrong(std::to_string(barrier.arrived) + " have come to it that expect " + std::to_string(barrier.threads) +
          (others.empty() ? "" : ": " + others));
  }
  ++barrier.arrived;
  barrier.came.add(self.warp, self.position);
  recorder_.arrive(barrier, waits);
  if (waits) {
    begin_wait(wait, barrier);
    barrier.waiting.add(self.warp, self.position);
  }
  if (barrier.arrived == barrier.threads) {
    release(barrier, barrier.waiting);
    barrier.starts_over();
  }
  if (!waits) return;
  suspend(self.warp);
  recorder_.waited(barrier, wait);
}

void Worker::grid_sync(const Wait& wait) {
  const Thread& self = *current_;
  if (!launch_->cooperative)
    fail(cudaErrorLaunchFailure, &self, text(wait.site),
         "grid.sync in a launch that is not cooperative (cudaLaunchCooperativeKernel)");
  begin_wait(wait, grid_barrier_);
  grid_barrier_.waiting.add(self.warp, self.position);
  if (grid_barrier_.arrived == 0) grid_barrier_.site = wait.site;
  ++grid_barrier_.arrived;
  suspend(self.warp);
}

void Worker::wait_for_value(const Wait& wait, const int* word, int value) {
  Word awaited(word, value);
  if (awaited.written()) return pass(awaited.orders, &awaited);
  words_.push_back(&awaited);
  awaited.waiting.add(current_->warp, current_->position);
  begin_wait(wait, awaited);
  suspend(current_->warp);
}

void Worker::grid_dependency_wait() {
  current_->kernel_before_awaited = true;
  pass(Orders::kernel_before, nullptr);
}

__forceinline__ void Worker::collective(const Wait& wait, unsigned mask, void* operand, Compute compute,
                                        bool all_must_come) {
  Thread& self = *current_;
  Warp& warp = warps_[self.warp];
  const unsigned bit = 1u << self.lane;
  if (!(mask & bit)) not_in_mask(wait, mask);

  Collective* collective = nullptr;
  for (unsigned used = warp.collectives_used; used != 0; used &= used - 1)
    if (Collective& candidate = warp.collectives[std::countr_zero(used)]; candidate.mask == mask)
      collective = &candidate;
  if (collective == nullptr) collective = &start_collective(warp, wait.name, mask, compute, all_must_come);
  if (collective->compute != compute ||
      (collective->name != wait.name && std::strcmp(collective->name, wait.name) != 0))
    different_collectives(warp, *collective, wait);
  begin_wait(wait, *collective);
  warp.operands[self.lane] = operand;
  const unsigned arrived = collective->arrived |= bit;
  if ((mask & warp.live & ~arrived) == 0) complete(warp, *collective);
  suspend(self.warp);
}

__forceinline__ Collective& Worker::start_collective(Warp& warp, const char* name, unsigned mask, Compute compute,
                                                     bool all_must_come) {
  const int unused = std::countr_one(warp.collectives_used);
  warp.collectives_used |= 1u << unused;
  Collective& collective = warp.collectives[unused];
  collective.starts(name, warp.number, mask, compute, all_must_come);
  return collective;
}

// A collective of those lanes that come to this line: its mask, empty, is no other's.
unsigned Worker::converged(const Wait& wait) {
  Thread& self = *current_;
  Warp& warp = warps_[self.warp];
  Collective* collective = nullptr;
  for (unsigned rest = warp.converging; rest != 0; rest &= rest - 1) {
    Collective& candidate = warp.collectives[std::countr_zero(rest)];
    if (warp.lanes[std::countr_zero(candidate.arrived)]->wait->site == wait.site) collective = &candidate;
  }
  if (collective == nullptr) {
    const Compute tell = [](void* const operands[32], unsigned lanes) {
      for (unsigned rest = lanes; rest != 0; rest &= rest - 1)
        *static_cast<unsigned*>(operands[std::countr_zero(rest)]) = lanes;
    };
    collective = &start_collective(warp, wait.name, 0, tell, false);
    warp.converging |= 1u << (collective - warp.collectives.data());
  }
  unsigned lanes = 0;
  begin_wait(wait, *collective);
  warp.operands[self.lane] = &lanes;
  collective->arrived |= 1u << self.lane;
  suspend(self.warp);
  return lanes;
}

void Worker::warp_collective(const Wait& wait, void* operand, Compute compute) {
  collective(wait, 0xffffffff, operand, compute, true);
}

// Every lane that can come to a collective has: computes it and lets them go.
void Worker::complete(Warp& warp, Collective& collective) {
  if (collective.all_must_come && collective.arrived != collective.mask) never_complete(warp, collective);
  warp.collectives_used &= ~(1u << (&collective - warp.collectives.data()));
  std::array<void*, 32> operands = {};
  ThreadSet waiting;
  const auto w = static_cast<unsigned>(&warp - warps_.data());
  waiting.warps = 1u << w;
  for (unsigned lanes = collective.arrived; lanes != 0; lanes &= lanes - 1) {
    const unsigned lane = std::countr_zero(lanes);
    operands[lane] = std::exchange(warp.operands[lane], nullptr);
    waiting.positions[w] |= 1u << warp.lanes[lane]->position;
  }
  release(collective, waiting);
  if (collective.compute == nullptr) return;
  recorder_.pause();
  collective.compute(operands.data(), collective.arrived);
  recorder_.resume();
}

void* dynamic_shared_memory() { return this_worker("dynamic shared memory").dynamic_shared(); }

int lane() { return static_cast<int>(this_worker("a shuffle").current().lane); }

void warp_collective(const char* name, unsigned mask, void* operand, Compute compute, const char* file, int line) {
  this_worker(name).collective({name, {file, line, __builtin_return_address(0)}}, mask, operand, compute, true);
}

void grid_sync(const char* file, int line) {
  if (left_out({file, line})) return;
  this_worker("grid.sync").grid_sync({"grid.sync", {file, line, __builtin_return_address(0)}});
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
  this_worker(name).wait_for_value({name, {file, line, __builtin_return_address(0)}}, word, value);
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

Vote vote(const Wait& wait, unsigned mask, bool predicate) {
  Vote vote = {predicate, 0, 0};
  this_worker(wait.name).collective(wait, mask, &vote, compute_vote, false);
  return vote;
}
}  // namespace

std::uint64_t shuffle(const char* name, unsigned mask, std::uint64_t value, int source, const char* file, int line) {
  Worker& self = this_worker(name);
  const Wait wait = {name, {file, line, __builtin_return_address(0)}};
  Shuffle shuffle = {value, source, false};
  self.collective(wait, mask, &shuffle, compute_shuffle, false);
  if (!shuffle.source_came)
    self.fail(cudaErrorLaunchFailure, &self.current(), text(wait.site),
              std::string(name) + " reads lane " + std::to_string(source) +
                  ", which has returned or is not in the mask or the block");
  return shuffle.value;
}

#ifdef WORKBOOK_TRACE
void note_update(const void* pc, const void* p, std::size_t bytes) {
  if (worker != nullptr && worker->in_kernel()) worker->recorder().access(pc, p, bytes, Access::atomic);
}
#endif

float atomic_add(float* p, float v) {
  note_update(__builtin_return_address(0), p, sizeof(float));
  return std::atomic_ref<float>(*p).fetch_add(v, std::memory_order_relaxed);
}

void atomic_add_4(float* p, const float* x) {
  note_update(__builtin_return_address(0), p, 4 * sizeof(float));
  for (int i = 0; i < 4; ++i) std::atomic_ref<float>(p[i]).fetch_add(x[i], std::memory_order_relaxed);
}

#ifdef WORKBOOK_TRACE
void ldmatrix_row(const void* row) {
  this_worker("ldmatrix").recorder().ldmatrix_row(__builtin_return_address(0), row);
}

void matrix_product(std::uint64_t flops) { this_worker("mma").recorder().matrix_product(flops); }

void watch(const char* name, std::int64_t row, std::int64_t column, float value, bool is_share) {
  this_worker("watch").recorder().watch(name, row, column, value, is_share);
}

float peek(const float* from) { return *from; }
#endif

}  // namespace simt

void __syncthreads(const char* file, int line) {
  if (simt::left_out({file, line})) return;
  constexpr const char* name = "__syncthreads";
  simt::this_worker(name).barrier({name, {file, line, __builtin_return_address(0)}}, false);
}

int __syncthreads_count(int predicate, const char* file, int line) {
  constexpr const char* name = "__syncthreads_count";
  return simt::this_worker(name).barrier({name, {file, line, __builtin_return_address(0)}}, predicate != 0).yes;
}

int __syncthreads_and(int predicate, const char* file, int line) {
  constexpr const char* name = "__syncthreads_and";
  const auto votes = simt::this_worker(name).barrier({name, {file, line, __builtin_return_address(0)}}, predicate != 0);
  return votes.yes == votes.threads;
}

int __syncthreads_or(int predicate, const char* file, int line) {
  constexpr const char* name = "__syncthreads_or";
  return simt::this_worker(name).barrier({name, {file, line, __builtin_return_address(0)}}, predicate != 0).yes > 0;
}

void __syncwarp(unsigned mask, const char* file, int line) {
  if (simt::left_out({file, line})) return;
  constexpr const char* name = "__syncwarp";
  simt::this_worker(name).collective({name, {file, line, __builtin_return_address(0)}}, mask, nullptr, nullptr, false);
}

unsigned __ballot_sync(unsigned mask, int predicate, const char* file, int line) {
  return simt::vote({"__ballot_sync", {file, line, __builtin_return_address(0)}}, mask, predicate != 0).yes;
}

int __all_sync(unsigned mask, int predicate, const char* file, int line) {
  const auto vote = simt::vote({"__all_sync", {file, line, __builtin_return_address(0)}}, mask, predicate != 0);
  return vote.yes == vote.lanes;
}

int __any_sync(unsigned mask, int predicate, const char* file, int line) {
  return simt::vote({"__any_sync", {file, line, __builtin_return_address(0)}}, mask, predicate != 0).yes != 0;
}

unsigned __activemask(const char* file, int line) { return simt::converged("__activemask", file, line); }

long long clock64() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
