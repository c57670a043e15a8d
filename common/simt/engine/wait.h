// What a thread can wait for, and how a message says that it does.
//
//   Awaited   what is waited for: the block's barrier, its cluster's, a named one, a collective of a warp, a word that
//             another block writes, the phase of an mbarrier, registers. It can say what it takes to let its threads
//             go, and who is missing
//   Wait      of one thread: under which name it waits, and on which line of the kernel
//
// A thread waits from Worker::begin_wait() until Worker::release(), and no other function makes one wait or lets one
// go. Observers learn there what that orders; and in Worker::pass(), if a thread comes when there is nothing to
// wait for.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "simt/engine/diagnosis.h"

namespace simt {

constexpr unsigned max_block_threads = 1024;
constexpr unsigned max_warps = max_block_threads / 32;

class Worker;

// Threads of a block by their places in the schedule: for each warp that has any, a bit for each.
struct ThreadSet {
  unsigned warps = 0;
  std::array<unsigned, max_warps> positions = {};

  void add(unsigned warp, unsigned position) {
    warps |= 1u << warp;
    positions[warp] |= 1u << position;
  }
  bool has(unsigned warp, unsigned position) const { return positions[warp] >> position & 1; }
  bool remove(unsigned warp, unsigned position) {  // true if it was there
    const bool was = has(warp, position);
    positions[warp] &= ~(1u << position);
    if (positions[warp] == 0) warps &= ~(1u << warp);
    return was;
  }
  void clear() {
    for (; warps != 0; warps &= warps - 1) positions[std::countr_zero(warps)] = 0;
  }
};

// Threads of a block as CUDA numbers them: for each warp its lanes.
using Lanes = std::array<unsigned, max_warps>;

// What it orders that threads are let go: for observers.
enum class Orders : std::uint8_t {
  nothing,       // lanes of a warp have met, that is all: shuffles, votes, mma
  lanes,         // what each of these lanes did before comes before what any of them does next: __syncwarp
  block,         // the same of all threads of the block: __syncthreads
  cluster,       // the same of all threads of the cluster that arrived so: barrier.cluster
  arrivals,      // what each thread did before it arrived comes before what those do next that waited: named barriers
  phase,         // the same, and what bulk copies brought: mbarriers, for which threads also wait when all have come
  other_blocks,  // what another block wrote comes before what those do next that waited: semaphores (not checked yet)
  kernel_before  // what the kernel before wrote comes before what this thread does next: dependent launches
};

struct Awaited {
  explicit Awaited(Orders orders) : orders(orders) {}

  // "64 of 96 threads have come"; empty if nothing is missing.
  virtual std::string what(const Worker& worker) const = 0;
  // The threads of this block that could let the others go and have not come.
  virtual Lanes missing(const Worker&) const { return {}; }

  Orders orders;

 protected:
  ~Awaited() = default;
};

// Lies on the stack of the thread that waits.
struct Wait {
  const char* name;  // as CUDA or PTX calls it: "__syncthreads", "bar.sync", "ldmatrix.x4"
  Site site;
};

// Whether the kernel is to run as if it did not wait on this line, which the variable SIMT_WITHOUT names: for tests
// that a barrier is needed.
extern int left_out_line;   // 0, where no call is, if there is none
void read_left_out_line();  // before the first launch
bool is_left_out(const Site& site);
inline bool left_out(const Site& site) { return site.line == left_out_line && is_left_out(site); }

// The block's barrier. Threads that have returned are not missing.
struct BlockBarrier : Awaited {
  BlockBarrier() : Awaited(Orders::block) {}
  std::string what(const Worker& worker) const override;
  Lanes missing(const Worker& worker) const override;
  void reset();

  struct Votes {
    int yes;
    int threads;
  };

  ThreadSet waiting;
  unsigned arrived = 0;
  Site site;               // of the first to arrive
  bool divergent = false;  // others have arrived elsewhere
  int yes = 0;             // predicates that were true
  Votes votes = {};        // of the last release: predicates that were true, and threads
};

// One of the sixteen, by its number. Some threads wait at it, others only arrive. Those with higher numbers are the
// barriers of tiles of 64 threads and more.
struct NamedBarrier : Awaited {
  static constexpr int numbers = 48;
  static int of_tile(unsigned first_thread, unsigned size) {
    return 16 + int((max_block_threads + first_thread) / size);
  }

  NamedBarrier() : Awaited(Orders::arrivals) {}
  std::string what(const Worker& worker) const override;
  Lanes missing(const Worker& worker) const override;
  void reset();

  int number = 0;
  int threads = 0;    // to come
  int arrived = 0;    // so far
  ThreadSet came;     // those
  ThreadSet waiting;  // of them
};

// Of the barrier of a cluster, what belongs to one of its blocks. A thread arrives, and later it waits. Threads that
// have returned are not missing.
struct ClusterBarrier : Awaited {
  ClusterBarrier() : Awaited(Orders::cluster) {}
  std::string what(const Worker& worker) const override;
  Lanes missing(const Worker& worker) const override;
  void reset();
  void next_phase();

  ThreadSet came;        // in the phase under way
  ThreadSet waiting;     // of them
  ThreadSet not_waited;  // have come, in this phase or the one before, and have not waited since
  unsigned arrived = 0;  // how many came
};

using Compute = void (*)(void* const operands[32], unsigned mask);

// Some lanes of a warp do something together.
struct Collective : Awaited {
  Collective() : Awaited(Orders::nothing) {}
  std::string what(const Worker& worker) const override;
  Lanes missing(const Worker& worker) const override;
  void starts(const char* name, unsigned warp, unsigned mask, Compute compute, bool all_must_come);

  bool all_must_come = false;  // a lane that has returned is missing, not excused
  unsigned mask = 0;
  unsigned arrived = 0;  // lanes
  unsigned warp = 0;     // its number, as CUDA counts
  const char* name = nullptr;
  Compute compute = nullptr;
};

// An int in global memory to which another block, or another thread of this one, gives a value.
struct Word : Awaited {
  Word(const int* word, int value) : Awaited(Orders::other_blocks), word(word), value(value) {}
  std::string what(const Worker& worker) const override;
  bool written() const { return __atomic_load_n(word, __ATOMIC_ACQUIRE) == value; }

  const int* word;
  int value;
  ThreadSet waiting;  // one
};

}  // namespace simt
