// The trace preset's part of the engine: hears of every access of a kernel, checks those of shared memory, and those of
// a dependent launch to global memory, and counts requests. A Worker tells its Recorder what happens; in the other
// presets the calls are empty.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simt/counts.h"
#include "simt/shared_memory.h"
#include "simt/wait.h"

#ifdef WORKBOOK_TRACE
#include "simt/async_shadow.h"
#include "simt/shadow.h"
#include "simt/variables.h"
#include "simt/walk_recorder.h"
#endif

namespace simt {

struct Launch;
struct Copy;
class PendingCopies;
struct BulkCopy;
class Mbarrier;
struct MatrixInShared;
struct Product;

#ifdef WORKBOOK_TRACE

constexpr bool tracing = true;

constexpr std::uintptr_t zeros =
    1;  // a bit that no address has from which cp.async copies: it is a multiple of 4 at least

// One request: what the lanes of a warp do together.
struct Request {
  const void* pc;
  Op op;
  unsigned size;  // bytes of each lane's access
  unsigned lanes;
  std::array<std::uintptr_t, 32> address;
  std::array<std::uintptr_t, 32>
      from;  // of cp.async: the address in global memory, plus `zeros` if none of it is fetched
  unsigned warp;
  std::size_t step;  // of the walk
};

class Recorder {
 public:
  void launch_begins(const Launch& launch, const SharedMemory& shared);
  void block_begins();
  void launch_ends();

  // What is known of the block that is under way, when another one goes on for a while.
  struct Block {
    std::uint32_t number;
    Shadow shadow;
    Lanes after_kernel_before;
  };
  void park(Block& block) { block = {block_, shadow_, after_kernel_before_}; }
  void unpark(const Block& block) {
    block_ = block.number;
    shadow_ = block.shadow;
    after_kernel_before_ = block.after_kernel_before;
  }

  // An access of the current thread.
  void access(const void* pc, const void* address, std::size_t size, Access access);
  // It is to an address that is not a multiple of its size: a mistake, unless it is to a variable of the thread's own.
  void misaligned(const void* pc, const void* address, std::size_t size, Access access) const;
  void ldmatrix_row(const void* pc, const void* row);
  void matrix_product(std::uint64_t flops);

  // Everything that orders accesses: these threads go on, having waited for `what` or come when it had happened. What
  // their warps have done since the last time is put together to requests.
  void let_go(Orders orders, const void* what, const ThreadSet& threads);
  void arrive(const Awaited& what, bool waits);               // the current thread, to something that orders arrivals
  void warp_ends(unsigned warp) { put_together(warp, ~0u); }  // all its threads have returned
  void block_ends();

  void shuffle();
  void pause() { paused_ = true; }  // collectives are computed by one lane, whose accesses are the engine's
  void resume() { paused_ = false; }

  void copy_starts(const Copy& copy, const PendingCopies& owner);
  void copy_lands(const Copy& copy, const PendingCopies& owner);

  // Bulk copies, mbarriers, the fence between the proxies, and wgmma: recorder_hopper.cc.
  void bulk_load_starts(const BulkCopy& copy, const Mbarrier& mbarrier);
  void bulk_load_lands(const BulkCopy& copy, const Mbarrier& mbarrier);
  void bulk_store_starts(const BulkCopy& copy);
  void bulk_store_ends(const BulkCopy& copy);
  void mbarrier_made(const Mbarrier& mbarrier, const void* pc);
  void mbarrier_used(const Mbarrier& mbarrier, const Wait& call);
  void mbarrier_arrival(const Mbarrier& mbarrier, const Wait& call);
  void phase_completes(const Mbarrier* mbarrier);
  void proxy_fence();
  void product_starts(const Product& product);
  void product_ends(const Product& product);

  // The current thread goes on, and has waited for this phase, or at this named barrier.
  void waited(const Mbarrier& mbarrier, unsigned phase, const Wait& wait);
  void waited(const NamedBarrier& barrier, const Wait& wait);

  // A number of the kernel's, for the walk, or the current thread's share of it.
  void watch(const char* name, std::int64_t row, std::int64_t column, float value, bool is_share);

 private:
  // A lane's access, kept until it is put together with those of the other lanes.
  struct Event {
    const void* pc;
    std::uint64_t what;   // address, size << 48, op << 56
    std::uintptr_t from;  // as in Request
    std::size_t step;
  };
  static constexpr std::uint64_t address_bits = (std::uint64_t(1) << 48) - 1;

  // 128 KiB of global memory: the block that last touched each sector, as a number that never repeats.
  struct Page {
    static constexpr std::size_t sectors = 4096;
    std::array<std::uint32_t, sectors> read = {}, written = {};
  };

  struct Site {
    const void* pc;
    Op op;
    unsigned widest;  // bytes of nvcc's instruction, 0 if that is not known
    Counts counts;
    // The request before this one, if it was of the same batch: joined to those before it, as nvcc might.
    std::uint64_t batch = 0;
    unsigned lanes = 0, size = 0;
    std::uintptr_t first = 0, last = 0;  // addresses of its first and its last lane
    std::vector<Request> narrow;         // not counted yet, where nvcc's are wider
  };

  void keep(unsigned thread, const void* pc, std::uintptr_t address, std::size_t size, Op op, std::uintptr_t from = 0);
  std::size_t shared_offset(std::uintptr_t address) const;  // no_offset outside shared memory
  void report(const Shadow::Mistake& mistake, Access access, std::size_t size, const void* pc);
  void report(const AsyncShadow::Mistake& mistake, const std::string& what, const void* pc);
  void count(const BulkCopy& copy);
  void report_first(const std::optional<AsyncShadow::Mistake>& asynchronous,
                    const std::optional<Shadow::Mistake>& mistake, const std::string& what, Access access,
                    std::size_t size, const void* pc);
  void own_variable(const void* pc, const void* address, Access access);  // of the current thread
  struct Operands {
    std::vector<std::size_t> a, b;  // 16 bytes each, in the shadow; no A if it is in registers
  };
  Operands operands_of(const Product& product) const;
  std::vector<std::size_t> chunks_of(const MatrixInShared& matrix, int first, int rows) const;
  void put_together(unsigned warp, unsigned lanes);
  void put_together_by_occurrence(unsigned warp, unsigned lanes);
  void count(const Request& request);
  void count_global(const Request& request, Counts& counts);
  void touch(std::uintptr_t sector, Op op);
  Site& site_of(const void* pc, Op op);
  bool goes_on(Site& site, const Request& request) const;
  static bool continues(const Request& before, const Request& request, unsigned most);
  std::size_t again(const Request& request);
  void count(const Request& request, Site& site);
  void counted(const Request& request);
  void count_copy(const Request& request);
  void batch_ends();

  Work work() const;  // of the launch until now
  void works();       // the current thread, something that has just been counted

  bool in_variable(const void* pointer) const;
  void check_dependency(const void* pc, std::uintptr_t address, std::size_t size, bool writes);

  static constexpr std::size_t no_offset = ~std::size_t(0);

  bool counting_ = false;
  WalkRecorder* walk_ = nullptr;  // null unless somebody wants a walk
  bool paused_ = false;
  bool dependent_ = false;  // launch
  const void* kernel_ = nullptr;
  struct Range {
    std::uintptr_t begin;
    std::size_t bytes;
    std::size_t offset;  // of its first byte in the shadow
  };
  std::vector<Range> ranges_;        // of shared memory
  DeviceVariable::Range variables_;  // all device variables lie there, and others between them
  Shadow shadow_;
  AsyncShadow async_;

  Lanes after_kernel_before_ = {};  // those that may touch what the launch before wrote
  // 16 bytes each, by their address / 16: what this launch has written of global memory, and what the one before did.
  std::unordered_set<std::uintptr_t> written_, written_before_;

  std::array<std::vector<Event>, max_block_threads> events_;  // by the thread's number in its block
  LaunchCounts current_;
  std::uint64_t shared_bytes_ = 0;  // of the launch
  std::vector<Site> sites_;
  std::unordered_map<std::uint64_t, std::size_t> sites_by_key_;  // PC and op
  std::uint64_t batch_ = 1;                                      // requests that are put together at once
  std::vector<std::size_t> joining_;                             // sites with narrow requests
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::array<std::pair<std::uintptr_t, Page*>, 16> recent_pages_ = {};
  std::uint32_t block_ = 0;        // number of this block
  std::uint32_t last_block_ = 0;   // and of the last that began
  std::uint32_t first_block_ = 1;  // and of the launch's first
};

#else

constexpr bool tracing = false;

class Recorder {
 public:
  struct Block {};
  void park(Block&) {}
  void unpark(const Block&) {}
  void launch_begins(const Launch&, const SharedMemory&) {}
  void block_begins() {}
  void launch_ends() {}
  void let_go(Orders, const void*, const ThreadSet&) {}
  void arrive(const Awaited&, bool) {}
  void warp_ends(unsigned) {}
  void block_ends() {}
  void shuffle() {}
  void pause() {}
  void resume() {}
  void copy_starts(const Copy&, const PendingCopies&) {}
  void copy_lands(const Copy&, const PendingCopies&) {}
  void bulk_load_starts(const BulkCopy&, const Mbarrier&) {}
  void bulk_load_lands(const BulkCopy&, const Mbarrier&) {}
  void bulk_store_starts(const BulkCopy&) {}
  void bulk_store_ends(const BulkCopy&) {}
  void mbarrier_made(const Mbarrier&, const void*) {}
  void mbarrier_used(const Mbarrier&, const Wait&) {}
  void mbarrier_arrival(const Mbarrier&, const Wait&) {}
  void phase_completes(const Mbarrier*) {}
  void waited(const Mbarrier&, unsigned, const Wait&) {}
  void waited(const NamedBarrier&, const Wait&) {}
  void proxy_fence() {}
  void product_starts(const Product&) {}
  void product_ends(const Product&) {}
};

#endif

}  // namespace simt
