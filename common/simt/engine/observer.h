// An observer watches launches: it hears of every access of traced kernels, and of everything that orders accesses. The
// engine knows no more of its observers than this. Usually nobody watches, and a launch runs on several OS threads;
// with an observer it runs on one, so that an observer needs no locks, and the thread that acts is `worker->current()`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simt/engine/wait.h"

namespace simt {

struct BulkCopy;
struct Copy;
struct Launch;
class Mbarrier;
struct ParkedBlock;
class PendingCopies;
struct Product;

// An atomic access is an update, which reads and writes; an exchange may be the first write of its place.
enum class Access : std::uint8_t { read, write, atomic, atomic_read, atomic_write, exchange };
constexpr bool is_atomic(Access access) { return access >= Access::atomic; }
constexpr bool reads(Access access) { return access != Access::write && access != Access::atomic_write; }
constexpr bool writes(Access access) { return access != Access::read && access != Access::atomic_read; }

// An access of one thread.
struct MemoryAccess {
  // Elsewhere are a thread's own variables, which a GPU has in registers, and constants.
  enum Space : std::uint8_t { global, shared, elsewhere };

  const void* pc;  // the return address of the call that tells of it: the kernel's line
  std::uintptr_t address;
  std::size_t size;
  unsigned thread;  // by its number in the block
  Access access;
  Space space;
  std::size_t offset;  // in the shared memory of the cluster's blocks (Worker::shared_offset)
  bool is_volatile = false;
  bool of_block = false;  // an atomic one: only for the threads of its block
};

// A number that a kernel shows, or a thread's share of it, which is to be added to those of others.
struct WatchedValue {
  const void* pc;  // as of an access
  const char* name;
  std::int64_t row, column;
  float value;
  bool is_share;
};

// From here on the thread does this step of its kernel's algorithm.
struct NamedStep {
  const void* pc;
  const char* name;
};

// Whether observers hear of accesses to a thread's own variables, too. Most accesses are such, and they concern only
// who measures time by them. (While products of wgmma are under way they are told anyway: their registers are
// variables.)
inline bool locals_are_told = false;

// Whether they hear `wrote` at each write, also to such variables: where exercises are counted.
inline bool writes_are_told = false;

// What a lane gets from one that is not at the shuffle: NaN of 2, 4 and 8 bytes, and an unlikely number.
inline constexpr std::uint64_t undefined_by_shuffle = 0xfff8feadffc0fead;

// What happens in a launch, in the order in which it does. "The thread" is the current one.
class Observer {
 public:
  virtual void launch_begins(const Launch&) {}
  virtual void launch_ends() {}  // of one that succeeded
  virtual void block_begins() {}
  virtual void block_ends() {}
  // In a cooperative launch: another block runs for a while, and then this one again.
  virtual void block_parked(const ParkedBlock&) {}
  virtual void block_unparked(const ParkedBlock&) {}
  // Of a cluster, whose blocks have all begun: the block runs that `worker` has now, until it pauses.
  virtual void block_goes_on() {}
  virtual void block_pauses() {}
  virtual void warp_ends(unsigned /*warp*/) {}  // all its threads have returned

  virtual void accessed(const MemoryAccess&) {}
  virtual void fence(bool /*of the block alone*/) {}  // the thread has called __threadfence() or the like
  virtual void misaligned(const MemoryAccess&) {}  // to an address that is no multiple of its size; `accessed` follows
  virtual void ldmatrix_row(const MemoryAccess&) {}
  virtual void read_only(const MemoryAccess&) {}  // as memory that no kernel writes meanwhile; `accessed` follows
  virtual void matrix_product(std::uint64_t /*flops*/) {}
  virtual void shuffled() {}
  virtual void undefined_shuffle(const Wait&) {}  // the thread has got the value of a lane that was not there
  virtual void voted() {}
  virtual void wrote(std::size_t /*bytes*/) {}  // the thread, wherever it is, if writes_are_told
  virtual void compared() {}  // the thread has compared two numbers, where its kernel is compiled to tell of that
  virtual void watched(const WatchedValue&) {}
  virtual void step_named(const NamedStep&) {}

  // These threads of that block go on, having waited for `what` or come when it had happened.
  virtual void released(Orders, const Awaited* /*what*/, const ThreadSet&, const Worker& /*block*/) {}
  virtual void arrived(const Awaited& /*at*/, bool /*waits*/) {}  // the thread, at what orders arrivals
  virtual void cluster_arrival() {}    // the thread, at its cluster's barrier, and that orders
  virtual void cluster_completes() {}  // that barrier, for now
  // The thread has done something to the shared memory of another block of its cluster; `accessed` tells of accesses.
  virtual void reached(const Worker& /*block*/, const char* /*name*/, const Site&) {}
  virtual void waited_at(const NamedBarrier&, const Wait&) {}  // the thread has, and goes on
  virtual void waited_for(const Mbarrier&, unsigned /*phase*/, const Wait&) {}

  virtual void copy_starts(const Copy&, const PendingCopies& /*owner*/) {}
  virtual void copy_lands(const Copy&, const PendingCopies& /*owner*/) {}

  // Of compute capability 9.0.
  virtual void bulk_load_starts(const BulkCopy&, const Mbarrier&) {}
  virtual void bulk_load_lands(const BulkCopy&, const Mbarrier&) {}
  virtual void bulk_store_starts(const BulkCopy&) {}
  virtual void bulk_store_ends(const BulkCopy&) {}
  virtual void mbarrier_made(const Mbarrier&, const void* /*pc*/) {}
  virtual void mbarrier_used(const Mbarrier&, const Wait&) {}
  virtual void mbarrier_arrival(const Mbarrier&, const Wait&) {}
  virtual void phase_completes(const Mbarrier&) {}
  virtual void proxy_fence() {}
  virtual void product_starts(const Product&) {}
  virtual void product_ends(const Product&) {}

 protected:
  ~Observer() = default;
};

using Observers = std::vector<Observer*>;

// Those of every launch from now on, in the order in which they were added. Not to be changed while a kernel runs.
const Observers& observers();
void add(Observer& observer);
void remove(Observer& observer);

// Whether this program's kernels were compiled so that they tell of their accesses (common/simt/README.md).
bool kernels_are_traced();

// Called at each write of host code that was compiled with them. It is in no launch, so that no observer hears of it.
extern void (*host_writes)(const void* address);

}  // namespace simt
