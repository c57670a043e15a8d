// The observer that looks for mistakes: races on shared memory, reads of what nobody has written there or of what is
// still on its way (shadow.h, async_shadow.h), accesses that are not aligned, and those of a dependent launch to what
// the launch before may not have written yet. The first mistake ends the launch.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simt/engine/observer.h"
#include "simt/trace/async_shadow.h"
#include "simt/trace/global_shadow.h"
#include "simt/trace/shadow.h"
#include "simt/trace/unchanged.h"

namespace simt {

class RaceDetector final : public Observer {
 public:
  // Of a program from elsewhere: also looks at global memory, and waits with what looks unwritten in shared memory for
  // a thread that writes it too late. What host code does is told by the functions of the runtime (host_part.h).
  void watch_everything() {
    global_ = std::make_unique<GlobalShadow>(unchanged_);
    locals_are_told = true;  // as the time of a kernel that does not end
  }
  GlobalShadow* global() { return global_.get(); }
  void forget_allocations() { allocations_ = {}; }    // one of them is no more
  void program_ends() { unchanged_.program_ends(); }  // what has waited until now is said

  void launch_begins(const Launch& launch) override;
  void launch_ends() override;
  void block_begins() override;
  void block_ends() override;
  void block_goes_on() override;
  void block_pauses() override;
  void block_parked(const ParkedBlock& block) override;
  void block_unparked(const ParkedBlock& block) override;

  void accessed(const MemoryAccess& access) override;
  void fence(bool of_block) override;
  void misaligned(const MemoryAccess& access) override;
  void ldmatrix_row(const MemoryAccess& row) override;
  void read_only(const MemoryAccess& access) override;
  void undefined_shuffle(const Wait& wait) override;

  void released(Orders orders, const Awaited* what, const ThreadSet& threads, const Worker& block) override;
  void arrived(const Awaited& at, bool waits) override;
  void cluster_arrival() override;
  void cluster_completes() override;
  void reached(const Worker& block, const char* name, const Site& site) override;

  void copy_starts(const Copy& copy, const PendingCopies& owner) override;
  void copy_lands(const Copy& copy, const PendingCopies& owner) override;

  void bulk_load_starts(const BulkCopy& copy, const Mbarrier& mbarrier) override;
  void bulk_load_lands(const BulkCopy& copy, const Mbarrier& mbarrier) override;
  void bulk_store_starts(const BulkCopy& copy) override;
  void bulk_store_ends(const BulkCopy& copy) override;
  void mbarrier_made(const Mbarrier& mbarrier, const void* pc) override;
  void mbarrier_used(const Mbarrier& mbarrier, const Wait& call) override;
  void mbarrier_arrival(const Mbarrier& mbarrier, const Wait& call) override;
  void phase_completes(const Mbarrier& mbarrier) override;
  void proxy_fence() override;
  void product_starts(const Product& product) override;
  void product_ends(const Product& product) override;

 private:
  void check_shared(const MemoryAccess& access);
  void check_reach(const Worker& block, Access access, const void* pc, const std::string& what, const Site& site);
  void check_bounds(const MemoryAccess& access);
  void check_shared_bounds(const MemoryAccess& access);
  void check_variable_bounds(const MemoryAccess& access);
  void check_own_variable(const MemoryAccess& access);
  void check_constant(const MemoryAccess& access);
  void check_host_memory(const MemoryAccess& access);
  void check_local_memory(const MemoryAccess& access);
  void host_memory_accessed(const MemoryAccess& access, const char* kind);
  bool from_the_kernel(const void* pc);
  void settle();
  void settle_stored();
  void unchanged(const Shadow::Mistake& mistake, const MemoryAccess& now);
  void settle_looks();
  void check_dependency(const void* pc, std::uintptr_t address, std::size_t size, bool writes);
  void check_dependency(const BulkCopy& copy, bool writes);
  void copy_touches(const void* pc, const void* global, std::size_t bytes, unsigned thread, Access access);
  std::string message_of(const Shadow::Mistake& mistake, Access access, std::size_t size, unsigned thread) const;
  void report(const Shadow::Mistake& mistake, Access access, std::size_t size, const void* pc);
  void report(const AsyncShadow::Mistake& mistake, const std::string& what, const void* pc);
  void report_first(const std::optional<AsyncShadow::Mistake>& asynchronous,
                    const std::optional<Shadow::Mistake>& mistake, const std::string& what, Access access,
                    std::size_t size, const void* pc);

  Shadow shadow_;
  AsyncShadow async_;
  std::unique_ptr<GlobalShadow> global_;
  struct Allocation {
    std::uintptr_t begin = 0, end = 0;
  };
  std::array<Allocation, 4> allocations_;  // of those accessed lately: as many as most kernels have
  unsigned oldest_allocation_ = 0;

  // The last store to shared memory, and what it races with, unless it changes nothing: that is known afterwards.
  struct Stored {
    std::optional<Shadow::Mistake> mistake;
    MemoryAccess now = {};  // of no bytes: none
    std::array<char, 16> old = {};
  } stored_;
  UnchangedStores unchanged_;
  std::unordered_set<const void*> same_;               // instructions that have stored the same
  std::unordered_map<const void*, bool> from_kernel_;  // by the return address: or is it the launch that accesses?

  // A plain read that races with an atomic access, by the instruction that reads. If threads look there before they
  // update the value themselves, as at a minimum, no harm is done; else a barrier is missing. The next one tells.
  struct Look {
    unsigned thread;
    const void* pc;
    std::string message;
  };
  std::unordered_map<const void*, Look> looks_;
  std::unordered_set<const void*> before_updates_;  // such instructions

  // Lanes have got undefined values from shuffles. Most of these are used by nobody, and of those that are, one is
  // recognised where it is stored.
  std::string undefined_at_;  // the last such shuffle of this launch
  MemoryAccess stored_last_ = {};
  std::unordered_set<const void*> stored_undefined_;
  void check_stored_last();

  std::uintptr_t object_ = 0;  // whose table of virtual functions was looked up last
  void check_table(const MemoryAccess& access);

  bool dependent_ = false;  // launch
  std::vector<Lanes>
      after_kernel_before_;  // those of each block of a cluster that may touch what the launch before wrote
  // 16 bytes each, by their address / 16: what this launch has written of global memory, and what the one before did.
  std::unordered_set<std::uintptr_t> written_, written_before_;

  // What is known of a block while another one runs.
  struct Parked {
    Shadow shadow;
    AsyncShadow async;
    std::vector<Lanes> after_kernel_before;
    GlobalShadow::Parked global;
  };
  std::unordered_map<const ParkedBlock*, Parked> parked_;
  std::vector<GlobalShadow::Parked> pausing_;  // blocks of a cluster, by rank
};

// The one that watches every launch, where kernels are traced (tsan.cc).
__attribute__((weak)) RaceDetector& race_detector();

}  // namespace simt
