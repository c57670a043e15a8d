// How threads run: fibers switch directly to one another where they have to wait. A thread that waits looks for the
// next one that can run, in its own warp first, and switches to it. When there is none left, and no other block that
// could let one go, that is a deadlock.
#include "simt/engine/engine.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <exception>
#include <numeric>
#include <random>
#include <utility>

#include "simt/cuda/atomics.h"
#include "simt/engine/device_memory.h"
#include "simt/engine/switch.h"

constinit thread_local uint3 threadIdx = {};
constinit thread_local uint3 blockIdx = {};
constinit thread_local dim3 blockDim = {};
constinit thread_local dim3 gridDim = {};

namespace simt {

constinit thread_local Worker* worker = nullptr;
constinit thread_local OwnMemory own_memory = {};

// Of the exception that is being handled: ": what it says", empty if that is not known.
static std::string words_of_exception() {
  try {
    throw;
  } catch (const std::exception& e) {
    return std::string(": ") + e.what();
  } catch (...) {
    return "";
  }
}

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
    fiber->context = {};
    fiber->thread = nullptr;
    idle_.push_back(fiber.get());
  }
}

void Worker::run(Launch& launch) {
  static thread_local const SignalStack signal_stack;
  if (owner_ != std::this_thread::get_id()) {  // code on fibers may hold thread_local addresses
    reset_fibers();
    others_.clear();
  }
  owner_ = std::this_thread::get_id();
  launch_ = &launch;
  ++launch.workers;
  worker = this;
  const int landed = sigsetjmp(landing_, 1);
  if (landed == 0) {
    prepare(launch);
    shared_.shut_guards();
    runs(true);
    while (!launch.failed.load(std::memory_order_relaxed)) {
      const std::uint64_t i = launch.next_block.fetch_add(1, std::memory_order_relaxed);
      if (i >= launch.units()) break;
      launch.cluster_blocks() == 1 ? run_block(i) : run_cluster(i);
      for (unsigned ended = 0; ended < launch.cluster_blocks(); ++ended) launch.pace.block_done(launch);
      constexpr std::size_t at_a_time = 16;
      if (launch.schedule.order == Order::last_first && !launch.cooperative && parked_.size() == at_a_time)
        run_parked_blocks();
    }
    if (!parked_.empty()) run_parked_blocks();
    if (!launch.failed) observe(&Observer::launch_ends);
  } else {
    if (landed == faulted) explain(&Worker::explain_fault);
    if (landed == overdue) explain(&Worker::explain_overdue);
    launch.waits_no_more(*this);
    for (Worker* each : members_) each->reset_fibers(), each->current_ = nullptr;
  }
  runs(false);
  shared_.open_guards();
  if (const std::string where = shared_.overwritten_guard(); !where.empty()) {
    const std::lock_guard lock(launch.mutex);
    if (!launch.failed.exchange(true))
      launch.failure = {
          cudaErrorIllegalAddress,
          "kernel " + kernel_name(launch.kernel) + ": invalid write " + where +
              ": found when its blocks had ended, so that the line is not known (without --no-races it is)"};
  }
  own_memory = {};
  current_ = nullptr;
  worker = nullptr;
  --launch.workers;
  launch_ = nullptr;
}

// By the block that ran, unless what has gone wrong has overwritten even which one that was.
void Worker::explain(void (Worker::*how)()) {
  if (std::find(members_.begin(), members_.end(), worker) == members_.end()) worker = this;
  explaining_ = true;
  worker->computing_ = true;  // the program's own code of the C++ library may run here
  (worker->*how)();
  worker->computing_ = false;
  explaining_ = false;
}

void Worker::runs(bool now) {
  const std::lock_guard lock(watched_);
  runs_ = now;
  os_thread_ = pthread_self();
}

void Worker::prepare(Launch& launch) {
  make_cluster(launch);
  shared_.prepare(launch.module, launch.shared_bytes);
  const auto [dynamic, dynamic_bytes] = shared_.span_of_dynamic();
  const auto [rest, rest_bytes] =
      launch.divided ? shared_.span_of_static() : std::pair(std::uintptr_t(0), ~std::size_t(0));
  own_memory = {{dynamic, dynamic_bytes}, {rest, rest_bytes}};
  blockDim = launch.block;
  gridDim = launch.grid;
  order_threads(0);
  observers_ = launch.observers;
  variables_ = DeviceVariable::all();
  computing_ = telling_ = false;
  suspicion_ = nullptr;
  observe(&Observer::launch_begins, launch);
  parked_.clear();
  made_room_ = false;
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
      thread.lane = static_cast<std::uint16_t>(lane_order[position]);
      thread.warp = static_cast<std::uint16_t>(w);
      thread.position = static_cast<std::uint16_t>(position);
      warp.lanes[thread.lane] = &thread;
    }
  }
}

// Of the block, or cluster, that runs as the i-th.
std::uint64_t Worker::number_of(std::uint64_t i) {
  const std::uint64_t units = launch_->units(), all = launch_->all_blocks / launch_->cluster_blocks();
  std::uint64_t number = i;
  if (launch_->schedule.order == Order::reverse) number = units - 1 - i;
  if (launch_->schedule.order == Order::shuffled) {
    number =
        static_cast<std::uint64_t>((static_cast<unsigned __int128>(i) * launch_->stride + launch_->offset) % units);
    order_threads(launch_->schedule.seed * 0x9e3779b97f4a7c15 + number);
  }
  if (units == all) return number;
  // A sample: the first, the last, and those between.
  return units == 1 ? 0 : static_cast<std::uint64_t>(static_cast<unsigned __int128>(number) * (all - 1) / (units - 1));
}

void Worker::run_block(std::uint64_t i) {
  const std::uint64_t block = number_of(i);
  const dim3 grid = launch_->grid;
  begin_block({static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
               static_cast<unsigned>(block / grid.x / grid.y)});
  Thread& first = *next(0);
  start_on_a_fiber(first);
  make_room({&main_.context, &first.fiber->context});
  if (live_ != 0) park();
}

void Worker::begin_block(uint3 index) {
  blockIdx = index_ = index;
  shared_.poison();
  observe(&Observer::block_begins);

  makes_room_ = launch_->schedule.order == Order::last_first && cluster().size() == 1;
  live_ = 0;
  barrier_.reset();
  grid_barrier_.reset();
  cluster_barrier_.reset();
  for (; named_barriers_used_ != 0; named_barriers_used_ &= named_barriers_used_ - 1)
    named_barriers_[std::countr_zero(named_barriers_used_)].reset();
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
}

// Keeps the block as it is. Its shared memory has addresses that the next block's has, too.
void Worker::park() {
  auto block = std::make_unique<ParkedBlock>();
  block->index = blockIdx;
  block->barrier = barrier_;
  block->grid_barrier = grid_barrier_;
  block->named_barriers = named_barriers_;
  block->named_barriers_used = named_barriers_used_;
  block->makes_room = std::exchange(made_room_, false);
  block->words = std::exchange(words_, {});
  block->live = live_;
  block->warps_ready = warps_ready_;
  block->warps = warps_;
  block->threads = std::exchange(threads_, std::vector<Thread>(max_block_threads));
  for (const auto& [begin, bytes] : shared_.ranges()) block->shared.insert(block->shared.end(), begin, begin + bytes);
  block->hopper = std::exchange(hopper_, {});
  observe(&Observer::block_parked, *block);
  parked_.push_back(std::move(block));
  order_threads(0);
}

void Worker::unpark(ParkedBlock& block) {
  blockIdx = index_ = block.index;
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
  barrier_ = block.barrier;
  grid_barrier_ = block.grid_barrier;
  named_barriers_ = block.named_barriers;
  named_barriers_used_ = block.named_barriers_used;
  words_ = std::move(block.words);
  observe(&Observer::block_unparked, block);
}

static Word* written(const std::vector<Word*>& words) {
  const auto found = std::find_if(words.begin(), words.end(), [](const Word* word) { return word->written(); });
  return found != words.end() ? *found : nullptr;
}

// All blocks have begun, or as many as run together. Those go on for which another one has written, and those that have
// made room, the last of them first; and when all have come to the grid's barrier, all of them.
void Worker::run_parked_blocks() {
  if (launch_->schedule.order == Order::last_first) std::reverse(parked_.begin(), parked_.end());
  while (!parked_.empty()) {
    const auto at_the_barrier = [](const auto& block) { return block->words.empty() && !block->makes_room; };
    const bool all_came =
        parked_.size() == launch_->blocks && std::all_of(parked_.begin(), parked_.end(), at_the_barrier);
    bool any = false;
    for (auto& block : std::exchange(parked_, {})) {
      if (all_came || block->makes_room || written(block->words) != nullptr) {
        any = true;
        go_on(std::move(block));
      } else {
        parked_.push_back(std::move(block));
      }
    }
    if (!any) blocks_never_come();
  }
}

void Worker::go_on(std::unique_ptr<ParkedBlock> block) {
  unpark(*block);
  if (!words_.empty())
    take_written_word();
  else if (!block->makes_room)
    grid_barrier_.reset();
  Thread& first = *next(first_ready_warp());
  make_room({&main_.context, &first.fiber->context});
  if (live_ != 0) park();
}

void Worker::blocks_never_come() {
  current_ = nullptr;
  const auto waiting =
      std::find_if(parked_.begin(), parked_.end(), [](const auto& block) { return !block->words.empty(); });
  if (waiting != parked_.end()) {
    unpark(**waiting);
    deadlock();
  }
  blockIdx = parked_.front()->index;
  fail(cudaErrorLaunchTimeout, nullptr, "",
       "deadlock: " + std::to_string(parked_.size()) + " of " + std::to_string(launch_->blocks) +
           " blocks wait in grid.sync at " + text(parked_.front()->grid_barrier.site) +
           ", and the others have returned");
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
  if (fiber.context.stack == nullptr) make_context(fiber.context, fiber.stack, fiber.size, fiber_main);
  fiber.thread = &thread;
  thread.fiber = &fiber;
}

namespace {

// Where the frames of what its caller calls begin.
[[gnu::noinline]] std::uintptr_t frames_of_callees() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

}  // namespace

// In one function, because each level of calls above a switch costs a wrong prediction (switch.h).
void Worker::fiber_main() {
  Worker& self = *worker;
  Fiber& fiber = *self.current_->fiber;
  fiber.kernels_end = frames_of_callees();
  for (;;) {
    Thread& thread = *self.current_;
    thread.wait = nullptr;
    thread.kernel_before_awaited = !self.launch_->dependent;
    if (std::exchange(thread.copies_used, false)) thread.copies->forget();
    std::string thrown;
    try {
      self.launch_->body();
    } catch (...) {
      thrown = "the kernel threw an exception" + words_of_exception();
    }
    if (!thrown.empty())
      self.fail(cudaErrorLaunchFailure, &thread, "", thrown);  // not inside the handler, which has to end first
    if (self.hopper_.used) self.hopper_.thread_ends(self);
    if (thread.copies_used || !thread.kernel_before_awaited) self.check_waits(thread);
    fiber.thread = nullptr;
    Thread* next = self.finish();
    if (next != nullptr && next->fiber == nullptr) {
      next->fiber = &fiber;
      fiber.thread = next;
      continue;
    }
    self.idle_.push_back(&fiber);
    make_room({&fiber.context, next ? &next->fiber->context : &self.main_.context});
  }
}

// Has the thread, which has returned, waited for what it had to wait for?
void Worker::check_waits(const Thread& thread) {
  const Copy* copy = thread.copies_used ? thread.copies->oldest() : nullptr;
  if (copy != nullptr && !observers_.empty()) {
    void* stack[] = {static_cast<char*>(const_cast<void*>(copy->pc)) - 1};
    fail(cudaErrorLaunchFailure, &thread, source_line(stack),
         "the thread returned without having waited for this cp.async");
  }
  if (!thread.kernel_before_awaited)
    fail(cudaErrorLaunchFailure, &thread, "",
         "the thread of a dependent launch returned without having waited for the kernel before");
}

// The current thread has returned. The next one, null if it was the block's last.
Thread* Worker::finish() {
  Thread& thread = *current_;
  Warp& warp = warps_[thread.warp];
  thread.fiber = nullptr;
  warp.live &= ~(1u << thread.lane);
  --live_;
  if (cluster_barrier_.arrived != 0 && cluster_barrier_.came.remove(thread.warp, thread.position))
    --cluster_barrier_.arrived;
  if (warp.live == 0) observe(&Observer::warp_ends, warp.number);
  for (unsigned used = warp.collectives_used; used != 0; used &= used - 1) {
    Collective& collective = warp.collectives[std::countr_zero(used)];
    if (collective.mask != 0 && (collective.mask & warp.live & ~collective.arrived) == 0) complete(warp, collective);
  }
  if (live_ == 0) {
    if (hopper_.used) hopper_.block_ends(*this);
    observe(&Observer::block_ends);
    if (cluster().size() > 1) {
      shared_.close();
      release_cluster_if_all_came();
    }
    current_ = nullptr;
    return nullptr;
  }
  const bool last = barrier_.arrived == live_;
  if (last) release_barrier();
  if (cluster().size() > 1 || cluster_barrier_.arrived != 0) release_cluster_if_all_came();
  Thread* following = next(last ? first_ready_warp() : thread.warp);
  return following != nullptr ? following : next_by_another_block();
}

// The current thread goes on at once, because there is nothing to wait for.
void Worker::pass(Orders orders, const Awaited* what) {
  if (observers_.empty()) return;
  ThreadSet self;
  self.add(current_->warp, current_->position);
  observe(&Observer::released, orders, what, self, *this);
}

void Worker::wait_for(const Wait& wait, const Awaited& awaited, ThreadSet& waiting) {
  begin_wait(wait, awaited);
  waiting.add(current_->warp, current_->position);
  suspend(current_->warp);
}

void Worker::release_threads(const Awaited& awaited, ThreadSet& waiting) { release(awaited, waiting); }

// No thread of the block can run, but some wait for what another block has to write: the next one to run when it has.
// Null if all wait for the other blocks of the grid.
Thread* Worker::next_by_another_block() {
  if (cluster().size() > 1) return nullptr;  // run_cluster() looks on
  if (makes_room_ && barrier_.arrived == live_) {
    makes_room_ = false;
    made_room_ = true;
    release_barrier();
    return nullptr;
  }
  if (grid_barrier_.arrived == live_) {
    release(grid_barrier_, grid_barrier_.waiting);
    return nullptr;
  }
  if (words_.empty()) deadlock();
  if (launch_->cooperative || launch_->schedule.order == Order::last_first) return nullptr;
  launch_->waits_for_others(*this);
  while (written_word() == nullptr) {
    if (launch_->all_wait_for_others()) deadlock();
    next_turn();
    std::this_thread::yield();
  }
  launch_->waits_no_more(*this);
  take_written_word();
  return next(first_ready_warp());
}

void Worker::take_written_word() {
  Word* const word = written(words_);
  std::erase(words_, word);
  release(*word, word->waiting);
}

Word* Worker::written_word() const {
  for (const Worker* each : members_)
    if (Word* const word = written(each->words_)) return word;
  return nullptr;
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

void Worker::named_barrier(const Wait& wait, int number, int threads, bool waits, bool of_tile) {
  Thread& self = *current_;
  const auto wrong = [&](const std::string& what) {
    fail(cudaErrorLaunchFailure, &self, text(wait.site),
         std::string(wait.name) + " on barrier " + std::to_string(number) + " for " + std::to_string(threads) +
             " threads: " + what);
  };
  if (!of_tile) {
    if (number < 1 || number > 15) wrong("the number must be 1 to 15");
    if (threads < 32 || threads % 32 != 0) wrong("the threads must be a multiple of 32");
  }
  NamedBarrier& barrier = named_barriers_[number];
  named_barriers_used_ |= std::uint64_t(1) << number;
  if (barrier.arrived == 0) barrier.threads = threads;
  if (barrier.threads != threads) {
    const std::string others = who_waits(&barrier);
    wrong(std::to_string(barrier.arrived) + " have come to it that expect " + std::to_string(barrier.threads) +
          (others.empty() ? "" : ": " + others));
  }
  ++barrier.arrived;
  barrier.came.add(self.warp, self.position);
  observe(&Observer::arrived, barrier, waits);
  if (waits) {
    begin_wait(wait, barrier);
    barrier.waiting.add(self.warp, self.position);
  }
  if (barrier.arrived == barrier.threads) {
    release(barrier, barrier.waiting);
    barrier.reset();
  }
  if (!waits) return;
  suspend(self.warp);
  observe(&Observer::waited_at, barrier, wait);
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
  make_room(collective(wait, 0xffffffff, operand, compute, true));
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
  computing_ = true;
  collective.compute(operands.data(), collective.arrived);
  computing_ = false;
}

// Constants have a cache of their own, whose requests Nsight Compute does not count with those of global memory.
MemoryAccess Worker::memory_access(const void* pc, const void* pointer, std::size_t size, Access access) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  MemoryAccess made = {pc, address, size, current_->number, access, MemoryAccess::elsewhere, SharedMemory::no_offset};
  if (DeviceMemory::instance().contains(pointer)) {
    made.space = MemoryAccess::global;
  } else if (static_cast<std::size_t>(static_cast<const char*>(pointer) - variables_.begin) < variables_.bytes) {
    const DeviceVariable* variable = DeviceVariable::at(pointer);
    if (variable != nullptr && variable->kind() != DeviceVariable::constant) made.space = MemoryAccess::global;
  }
  if (made.space == MemoryAccess::elsewhere && (made.offset = shared_offset(pointer)) != SharedMemory::no_offset)
    made.space = MemoryAccess::shared;
  return made;
}

}  // namespace simt
