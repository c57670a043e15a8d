// The engine inside: engine.cc and switch.h (how threads run), wait.cc (what is said of those that wait), failure.cc
// (how a launch fails) and launch.cc (how a grid reaches the OS threads).
//
//   Launch   one kernel launch: its grid, the next block to hand out, its first failure
//   Worker   one OS thread's share: fibers, shared memory, and the state of the block it runs. Where blocks form
//            clusters (cluster.cc), it has another Worker for each further block of a cluster
//   Warp     which lanes can run, and the collectives that lanes wait in
//   Thread   one CUDA thread of that block, and what it waits for (wait.h)
//   Fiber    a stack; the thread on it, if any. A thread takes a fiber when it starts and gives it up when it
//            returns, so a kernel in which nobody waits runs all its threads on one fiber
#pragma once

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "simt/engine/builtin_variables.h"
#include "simt/engine/context.h"
#include "simt/engine/copy.h"
#include "simt/engine/device_variables.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/launch.h"
#include "simt/engine/observer.h"
#include "simt/engine/pace.h"
#include "simt/engine/shared_memory.h"
#include "simt/engine/wait.h"
#include "simt/hopper/hopper_state.h"

namespace simt {

constexpr std::size_t stack_bytes = 128 * 1024;
constexpr std::size_t guard_bytes = 64 * 1024;  // wide, because a large frame may step over a narrow one

struct alignas(64) Fiber {
  Context context;
  char* stack = nullptr;  // its lowest address
  std::size_t size = 0;
  struct Thread* thread = nullptr;
  std::uintptr_t kernels_end = 0;  // above it are the engine's frames
};

struct alignas(64) Thread {  // one cache line
  uint3 index;
  unsigned number;  // in the block, as CUDA counts
  std::uint16_t lane;
  std::uint16_t warp;      // position in the schedule, as everywhere in this file
  std::uint16_t position;  // of the lane in its warp's schedule
  bool kernel_before_awaited;
  bool copies_used;
  Fiber* fiber;      // null before it starts and after it returns
  const Wait* wait;  // null while it runs
  const Awaited* awaited;
  std::unique_ptr<CopyGroups> copies;
};
static_assert(sizeof(Thread) == 64);

// `ready` has a bit per position in the schedule, all else a bit per lane.
struct Warp {
  unsigned number;  // in the block, as CUDA counts: threads 32 * number and up
  unsigned ready;
  unsigned live;
  unsigned collectives_used;  // bits of `collectives`
  unsigned converging;        // those of them that wait only until the warp's other lanes wait, too
  std::array<Collective, 32> collectives;
  std::array<void*, 32> operands;  // of waiting lanes, null for the others
  std::array<Thread*, 32> lanes;
};

// A block of a cooperative launch, while others run: its threads have all come to the grid's barrier, or wait for what
// other blocks have to write.
struct ParkedBlock {
  uint3 index;
  BlockBarrier barrier, grid_barrier;
  std::array<NamedBarrier, NamedBarrier::numbers> named_barriers;
  std::uint64_t named_barriers_used;
  bool makes_room;           // at its first barrier: nothing keeps it from going on
  std::vector<Word*> words;  // none if it has come to the grid's barrier
  unsigned live;
  unsigned warps_ready;
  std::array<Warp, max_warps> warps;
  std::vector<Thread> threads;
  std::vector<char> shared;
  HopperState hopper;
};

// The first failure of a launch, complete but for where: that is known only once the stack is looked at.
struct Failure {
  cudaError_t code = cudaSuccess;
  std::string message;
};

struct Launch {
  Launch(const void* kernel, const Module* module, dim3 grid, dim3 block, std::size_t shared_bytes, const Body& body,
         bool dependent)
      : kernel(kernel),
        module(module),
        grid(grid),
        block(block),
        shared_bytes(shared_bytes),
        body(body),
        dependent(dependent),
        all_blocks(std::uint64_t(grid.x) * grid.y * grid.z),
        blocks(all_blocks) {}

  const void* kernel;
  const Module* module;
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  const Body& body;
  bool dependent;                      // its threads have to wait for the launch before
  bool cooperative = false;            // its blocks wait for one another
  bool divided = false;                // among several OS threads
  dim3 cluster;                        // blocks of a cluster
  dim3 asked_cluster = dim3(0, 0, 0);  // that the kernel itself asks for, if it has to be launched again so
  Schedule schedule;
  Observers observers;

  std::uint64_t all_blocks;
  std::uint64_t blocks;      // that run: fewer, if they are a sample
  std::uint64_t stride = 1;  // shuffled order: block, or cluster, i is (offset + i * stride) mod units()
  std::uint64_t offset = 0;
  std::atomic<std::uint64_t> next_block = 0;
  std::atomic<bool> failed = false;
  std::atomic<int> workers = 0;  // that run blocks
  std::mutex mutex;              // for what follows
  Failure failure;
  Pace pace;
  std::vector<const Worker*>
      waiting_workers;  // whose threads all wait, some of them for what another block has to write

  unsigned cluster_blocks() const { return cluster.x * cluster.y * cluster.z; }
  std::uint64_t units() const { return blocks / cluster_blocks(); }  // blocks that run, or clusters

  void waits_for_others(const Worker& worker);
  void waits_no_more(const Worker& worker);
  bool all_wait_for_others();  // for ever: no block runs that could write what they wait for
};

class Worker {
 public:
  Worker();

  // Runs blocks of the launch on the calling OS thread until none is left or one has failed.
  void run(Launch& launch);

  bool in_kernel() const { return current_ != nullptr; }
  const Thread& current() const { return *current_; }
  void* dynamic_shared() const { return shared_.dynamic(); }
  Launch& launch() const { return *launch_; }
  unsigned live_lanes() const { return warps_[current_->warp].live; }

  // Tells all who watch this launch: observe(&Observer::warp_ends, warp). What they do meanwhile, they are not told of.
  template <class... Parameters, class... Arguments>
  void observe(void (Observer::*event)(Parameters...), const Arguments&... arguments) {
    if (std::exchange(telling_, true)) return;
    for (Observer* const each : observers_) (each->*event)(arguments...);
    telling_ = false;
  }
  // The same of an access by the current thread, whose kernel called at `pc`.
  MemoryAccess memory_access(const void* pc, const void* pointer, std::size_t size, Access access) const;
  void tell_of_access(const void* pc, const void* pointer, std::size_t size, Access access, bool is_volatile = false) {
    if (observers_.empty() || computing()) return;
    if (writes_are_told && writes(access)) observe(&Observer::wrote, size);
    if (!locals_are_told && !products_under_way() && in_kernels_frames(reinterpret_cast<std::uintptr_t>(pointer)))
      return;
    MemoryAccess made = memory_access(pc, pointer, size, access);
    made.is_volatile = is_volatile;
    made.of_block = atomics_of_block_;
    observe(&Observer::accessed, made);
  }
  bool atomics_are_of_block() const { return atomics_of_block_; }
  void atomics_are_of_block(bool are) { atomics_of_block_ = are; }  // from now on
  // One that a GPU makes in one piece.
  void tell_of_whole_access(const void* pc, const void* pointer, std::size_t size, Access access,
                            bool is_volatile = false) {
    if (reinterpret_cast<std::uintptr_t>(pointer) % size != 0 && !computing())
      observe(&Observer::misaligned, memory_access(pc, pointer, size, access));
    tell_of_access(pc, pointer, size, access, is_volatile);
  }
  void tell_of_ldmatrix_row(const void* pc, const void* row) {
    if (!observers_.empty()) observe(&Observer::ldmatrix_row, memory_access(pc, row, 16, Access::read));
  }
  // Has the current thread's warp started products of wgmma that it has not waited for?
  bool products_under_way() const { return hopper_.used && hopper_.products.under_way(current_->number / 32); }
  bool computing() const { return computing_ || telling_; }  // and what is accessed is no access of the kernel's
  void computes(bool now) { computing_ = now; }

  // The blocks of the cluster that this block is in, by rank: usually it alone. And what is not known of their shared
  // memory by one block alone: whose an address is, null if nobody's; its place when all of it is laid out in one
  // piece, block by block (SharedMemory::offset_of); and PTX's address, in which a block's number counts.
  std::span<Worker* const> cluster() const { return first_->members_; }
  unsigned rank() const { return rank_; }
  const uint3& index() const { return index_; }
  bool has_ended() const { return live_ == 0; }
  unsigned cluster_arrivals() const { return cluster_barrier_.arrived; }
  std::size_t shared_bytes_of_each() const { return (shared_.extent() + 15) / 16 * 16; }
  Worker* block_with(const void* pointer) const;
  std::size_t shared_offset(const void* pointer) const;
  std::uint32_t shared_address(const void* pointer) const;
  void* shared_pointer(std::uint32_t address) const;
  void* map_shared(const void* pointer, unsigned rank) const;  // where that block has what this one has there
  // The current thread's call does something to the shared memory of that block.
  void reaches(const Worker& block, const char* name, const Site& site);

  // What threads wait for, on the current thread's fiber. Where a Turn is returned, the caller has to make room.
  Turn barrier(const Wait& wait, bool predicate);
  const BlockBarrier::Votes& votes() const { return barrier_.votes; }
  Turn collective(const Wait& wait, unsigned mask, void* operand, Compute compute, bool all_must_come);
  unsigned converged(const Wait& wait);
  void named_barrier(const Wait& wait, int number, int threads, bool waits, bool of_tile = false);
  void grid_sync(const Wait& wait);
  void cluster_arrive(const Wait& call, bool releases);
  void cluster_wait(const Wait& wait);
  void asks_for_cluster(dim3 cluster);
  void wait_for_value(const Wait& wait, const int* word, int value);
  Word* written_word() const;  // one that a thread of the block, or of its cluster, waits for and need not any more
  void grid_dependency_wait();

  CopyGroups& copies() {
    if (current_->copies == nullptr) current_->copies = std::make_unique<CopyGroups>();
    current_->copies_used = true;
    return *current_->copies;
  }

  // For what threads wait for elsewhere (mbarrier.h, setmaxnreg.h, wgmma.h): the current thread waits until it is among
  // those that are let go, or goes on at once, because there is nothing to wait for; or all lanes of its warp meet.
  void wait_for(const Wait& wait, const Awaited& awaited, ThreadSet& waiting);
  void release_threads(const Awaited& awaited, ThreadSet& waiting);
  void pass(Orders orders, const Awaited* what);
  void warp_collective(const Wait& wait, void* operand, Compute compute);
  HopperState& hopper() { return hopper_; }
  const SharedMemory& shared() const { return shared_; }
  dim3 block() const { return launch_->block; }

  // Threads of the block by their numbers: these, those that wait, those that have not returned, all.
  Lanes lanes(const ThreadSet& threads) const;
  Lanes waiting_threads() const;
  Lanes live_threads() const;
  Lanes all_threads() const;

  // Ends the launch: `what` happened to the thread (null: to the block) `at` this line (empty: not known).
  [[noreturn]] void fail(cudaError_t code, const Thread* thread, const std::string& at, const std::string& what);
  // What the current thread did looks like a mistake, and is one if nothing explains it until the block's next barrier
  // or end, or if the launch fails before for another reason: then this is said in its place.
  void suspect(const std::string& at, const std::string& what);
  bool suspected() const { return suspicion_ != nullptr && suspicion_->block == block_number(); }
  // As fail(), of a thread by its number, with the race or the like that it is in.
  [[noreturn]] void fail_of(unsigned thread, const std::string& at, const std::string& what);
  void fail_if_suspected();
  bool on_a_fiber(std::uintptr_t address) const;
  bool on_its_fiber(std::uintptr_t address) const;  // the current thread's
  // Is it a place for variables of the current thread's kernel?
  bool in_kernels_frames(std::uintptr_t address) const {
    const Fiber* const fiber = current_->fiber;  // null where the thread has not started, or has returned
    return fiber != nullptr && address >= reinterpret_cast<std::uintptr_t>(fiber->stack) &&
           address < fiber->kernels_end;
  }
  // Is this the grid's barrier?
  bool at_grid_barrier(const Awaited* what) const { return what == &grid_barrier_; }
  std::uint64_t block_number() const {
    return blockIdx.x + (std::uint64_t(blockIdx.y) + std::uint64_t(blockIdx.z) * launch_->grid.y) * launch_->grid.x;
  }
  // Why this lane of the running thread's warp is not at its call: "it has returned".
  std::string absence(int lane, unsigned mask) const;

  // On the signal's stack. Jumps to the worker's own stack, where the fault is explained.
  [[noreturn]] void fault(int signal, const siginfo_t& info, const ucontext_t& context);

  // For the Watchdog, on another OS thread: asks the current thread to fail if it has been running since `since` (which
  // is kept up to date) for longer than the schedule allows. Then that happens in a signal, where it can be done, or at
  // the next call of fail_if_overdue().
  struct Running {
    std::uint64_t turn = 0;
    double since = 0;  // of the OS thread's processor time
  };
  void check_time(Running& since);
  void signalled(const ucontext_t& context);
  bool is_overdue() const {
    return first_->turn_.load(std::memory_order_relaxed) == first_->overdue_turn_.load(std::memory_order_relaxed);
  }
  void fail_if_overdue();
  void fail_if_overdue_at(const void* pc);  // the kernel's line, for observers

 private:
  [[noreturn]] static void fiber_main();
  void check_waits(const Thread& thread);
  void prepare(Launch& launch);
  void order_threads(std::uint64_t seed);
  void run_block(std::uint64_t i);
  void run_cluster(std::uint64_t i);
  std::uint64_t number_of(std::uint64_t i);
  void begin_block(uint3 index);
  void prepare_block(const Launch& launch);
  void make_cluster(const Launch& launch);
  void activate();
  bool backwards() const;
  Worker* next_of_cluster(unsigned after);
  void release_cluster_if_all_came();
  [[noreturn]] void deadlock_of_cluster();
  void run_parked_blocks();
  void park();
  void unpark(ParkedBlock& block);
  void go_on(std::unique_ptr<ParkedBlock> block);
  [[noreturn]] void blocks_never_come();
  Thread* next(unsigned warp);
  Thread* next_after_converging(unsigned warp);
  Thread* next_by_another_block();
  void take_written_word();
  Thread* finish();
  void begin_wait(const Wait& wait, const Awaited& awaited);
  Turn turn(unsigned next_warp);
  void suspend(unsigned next_warp);
  void release(const Awaited& awaited, ThreadSet& waiting);
  unsigned first_ready_warp() const { return std::countr_zero(warps_ready_); }
  void start_on_a_fiber(Thread& thread);
  void release_barrier();
  void complete(Warp& warp, Collective& collective);
  Collective& start_collective(Warp& warp, const char* name, unsigned mask, Compute compute, bool all_must_come);
  void make_fibers();
  void reset_fibers();
  void runs(bool now);
  void next_turn() {
    first_->turn_.store(first_->turn_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void explain(void (Worker::*how)());
  void keep_stack(void* instruction);
  void explain_fault();
  void explain_overdue();
  std::string overdue_text() const;
  [[noreturn]] void not_in_mask(const Wait& wait, unsigned mask);
  [[noreturn]] void different_collectives(const Warp& warp, const Collective& waiting, const Wait& wait);
  [[noreturn]] void never_complete(const Warp& warp, const Collective& collective);
  [[noreturn]] void deadlock();
  std::string who_waits(const Awaited* awaited = nullptr) const;
  std::string reason(const Awaited& awaited) const;
  std::string who(const Lanes& threads, const char* singular, const char* plural) const;
  void record(cudaError_t code, const Thread* thread, const std::string& at, const std::string& what);

  Launch* launch_ = nullptr;
  Thread* current_ = nullptr;
  unsigned live_ = 0;         // threads of the block that have not returned
  unsigned warps_ready_ = 0;  // warps with ready != 0
  unsigned warp_count_ = 0;

  // Of a cluster's blocks, the first one's worker has what belongs to the OS thread.
  Worker* first_ = this;
  std::vector<Worker*> members_ = {this};
  std::vector<std::unique_ptr<Worker>> others_;  // that it has made for them
  unsigned rank_ = 0;
  uint3 index_ = {};  // blockIdx
  ClusterBarrier cluster_barrier_;

  BlockBarrier barrier_;
  BlockBarrier grid_barrier_;  // this block's part of it
  std::vector<std::unique_ptr<ParkedBlock>> parked_;
  bool makes_room_ = false;  // the block, at its next barrier (Order::last_first)
  bool made_room_ = false;   // just now
  std::array<NamedBarrier, NamedBarrier::numbers> named_barriers_;
  std::uint64_t named_barriers_used_ = 0;  // by this block: a bit each
  std::vector<Word*> words_;               // that threads wait for
  HopperState hopper_;

  std::array<Warp, max_warps> warps_;
  std::vector<Thread> threads_ = std::vector<Thread>(max_block_threads);  // [warp * 32 + position]
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Fiber main_;  // the worker's own stack
  SharedMemory shared_;
  struct Suspicion {
    std::uint64_t block;
    Thread thread;
    std::string at, what;
  };
  std::unique_ptr<Suspicion> suspicion_;
  DeviceVariable::Range variables_;       // all device variables lie there, and others between them
  std::span<Observer* const> observers_;  // of launch_
  bool atomics_of_block_ = false;
  bool computing_ = false;  // a collective: what it accesses is no access of the kernel's
  bool telling_ = false;    // an observer or a failure: neither is what they access, where the linker
                            // takes a function of the library that was compiled with the kernels
  std::thread::id owner_;   // the OS thread that the fibers last ran on

  std::mutex watched_;                   // for what follows
  bool runs_ = false;                    // blocks of launch_
  pthread_t os_thread_ = {};             // on this
  std::atomic<std::uint64_t> turn_ = 1;  // another thread's with each number
  std::atomic<std::uint64_t> overdue_turn_ = 0;

  // Where control goes when a block ends early, and why.
  sigjmp_buf landing_;
  bool explaining_ = false;
  enum : int { failed = 1, faulted = 2, overdue = 3, asked = 4 };
  struct {
    bool division;
    bool misaligned;
    bool call;  // there is nothing to execute
    bool write;
    bool access_known;
    void* address;
    std::array<void*, 48> stack;
    int depth;
  } fault_;
};

// Of a thread, from its number in the block.
inline uint3 index_of(unsigned number, const dim3& block) {
  return {number % block.x, number / block.x % block.y, number / block.x / block.y};
}

[[noreturn]] void outside_a_kernel(const char* name);

// The worker that the calling OS thread is, while it runs blocks.
extern constinit thread_local Worker* worker;

// That worker, for what a kernel calls by this name.
inline Worker& this_worker(const char* name) {
  if (worker == nullptr || !worker->in_kernel()) outside_a_kernel(name);
  return *worker;
}

// A good hash of 64 bits: the finalizer of SplitMix64.
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Faults on fibers become failures of their launch; all others go to whoever handled them before.
void install_fault_handler();

// A stack for signals, because a fiber's own may be what overflowed. An OS thread that has one keeps it.
class SignalStack {
 public:
  SignalStack() {
    stack_t old;
    if (sigaltstack(nullptr, &old) != 0 || !(old.ss_flags & SS_DISABLE)) return;
    memory_ = std::make_unique<char[]>(bytes);
    stack_t stack = {};
    stack.ss_sp = memory_.get();
    stack.ss_size = bytes;
    sigaltstack(&stack, nullptr);
  }
  ~SignalStack() {
    if (!memory_) return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr std::size_t bytes = 64 * 1024;
  std::unique_ptr<char[]> memory_;
};

}  // namespace simt
