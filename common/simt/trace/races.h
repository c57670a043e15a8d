// The observer that looks for mistakes: races on shared memory, reads of what nobody has written there or of what is
// still on its way (shadow.h, async_shadow.h), accesses that are not aligned, and those of a dependent launch to what
// the launch before may not have written yet. The first mistake ends the launch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simt/engine/observer.h"
#include "simt/trace/async_shadow.h"
#include "simt/trace/shadow.h"

namespace simt {

class RaceDetector final : public Observer {
 public:
  void launch_begins(const Launch& launch) override;
  void block_begins() override;
  void block_parked(const ParkedBlock& block) override;
  void block_unparked(const ParkedBlock& block) override;

  void accessed(const MemoryAccess& access) override;
  void misaligned(const MemoryAccess& access) override;
  void ldmatrix_row(const MemoryAccess& row) override;

  void released(Orders orders, const Awaited* what, const ThreadSet& threads) override;
  void arrived(const Awaited& at, bool waits) override;

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
  void check_own_variable(const MemoryAccess& access);
  void check_dependency(const void* pc, std::uintptr_t address, std::size_t size, bool writes);
  void check_dependency(const BulkCopy& copy, bool writes);
  void report(const Shadow::Mistake& mistake, Access access, std::size_t size, const void* pc);
  void report(const AsyncShadow::Mistake& mistake, const std::string& what, const void* pc);
  void report_first(const std::optional<AsyncShadow::Mistake>& asynchronous,
                    const std::optional<Shadow::Mistake>& mistake, const std::string& what, Access access,
                    std::size_t size, const void* pc);

  Shadow shadow_;
  AsyncShadow async_;

  bool dependent_ = false;          // launch
  Lanes after_kernel_before_ = {};  // those that may touch what the launch before wrote
  // 16 bytes each, by their address / 16: what this launch has written of global memory, and what the one before did.
  std::unordered_set<std::uintptr_t> written_, written_before_;

  // What is known of a block while another one runs.
  struct Parked {
    Shadow shadow;
    AsyncShadow async;
    Lanes after_kernel_before;
  };
  std::unordered_map<const ParkedBlock*, Parked> parked_;
};

}  // namespace simt
