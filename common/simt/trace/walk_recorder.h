// The observer that makes a walk (walk.h): of accesses, of the waits between which the steps lie, and of the numbers
// that a kernel shows. The Counter tells it how much work each step did.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simt/engine/observer.h"
#include "simt/trace/walk.h"
#include "simt/trace/walk_steps.h"

namespace simt {

// Threads and warps are told by their numbers in the block, shared memory by its offset in the shadow.
class WalkRecorder final : public Observer {
 public:
  explicit WalkRecorder(std::vector<Tensor> tensors);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  std::vector<LaunchWalk> take() { return std::move(launches_); }  // of the launches that succeeded

  // From the Counter: what is new since the last time in the work of the launch until now belongs to this step of the
  // warp.
  void works(unsigned warp, std::size_t step, const Work& work);
  std::size_t step_of(unsigned thread) const { return now_.step_of[thread]; }

  void launch_begins(const Launch& launch) override;
  void launch_ends() override;
  void block_begins() override;
  void block_pauses() override { take_turns(); }
  void block_goes_on() override { take_turns(); }
  void block_ends() override { all_meet(""); }

  void accessed(const MemoryAccess& access) override;
  void ldmatrix_row(const MemoryAccess& row) override;
  void watched(const WatchedValue& value) override;
  void step_named(const NamedStep& named) override;
  void released(Orders orders, const Awaited* what, const ThreadSet& threads, const Worker& block) override;
  void arrived(const Awaited& at, bool waits) override;
  void waited_at(const NamedBarrier& barrier, const Wait& wait) override;
  void waited_for(const Mbarrier& mbarrier, unsigned phase, const Wait& wait) override;
  void copy_starts(const Copy& copy, const PendingCopies& owner) override;
  void copy_lands(const Copy& copy, const PendingCopies& owner) override;
  void bulk_load_starts(const BulkCopy& copy, const Mbarrier& mbarrier) override;
  void bulk_store_starts(const BulkCopy& copy) override;
  void mbarrier_made(const Mbarrier& mbarrier, const void* pc) override;
  void phase_completes(const Mbarrier& mbarrier) override;
  void product_starts(const Product& product) override;

 private:
  // What 16 bytes of shared memory hold. In a place, a row that is none is outside the tensor: zeros.
  struct Chunk {
    static constexpr std::uint32_t none = ~0u;
    std::uint32_t place = none, tensor = none, row = none;
  };

  struct OfBlock {
    std::vector<WarpSteps> warps;  // since the last barrier of the block
    std::array<std::size_t, 1024> step_of = {};
    std::array<unsigned, 1024> arrived_at = {};
    Gates gates;
    StepsSoFar so_far;
    std::vector<Chunk> chunks;
    std::size_t number = 0;  // among the launch's
  };
  OfBlock& of(const Worker& block);
  void take_turns();
  OfBlock now_;                   // of the block that runs
  std::vector<OfBlock> pausing_;  // of others of its cluster, by rank

  void moves(unsigned thread, Move move, std::uintptr_t address, std::size_t bytes);
  void reads_shared(unsigned thread, std::size_t offset, std::size_t size);
  void writes_shared(unsigned thread, std::size_t offset, std::size_t size);
  static void completes(OfBlock& block, int gate);                            // its phase that is under way
  void resumes(unsigned thread, int gate, unsigned phase, const Site& site);  // having waited
  bool goes_on(unsigned thread, const auto& is_next);  // to a step that another lane has begun; or else to a new one
  WarpStep& begins(unsigned warp);                     // a step of it
  void meet(unsigned warp, unsigned lanes);  // they go on together, the last of them now in as many steps as the first
  void all_meet(const std::string& line);    // at the block's barrier on this line; or, if it is empty, the block ends

  WarpStep& step(unsigned thread) { return now_.warps[thread / 32].steps[now_.step_of[thread]]; }
  void steps_begin();
  unsigned place_of(const BulkCopy& copy, std::size_t offset);
  static Phase& under_way(OfBlock& block, int gate);
  std::pair<std::uint32_t, RowList> rows_at(const std::vector<std::size_t>& offsets) const;  // of a tensor
  template <class Visit>
  void for_each_row(std::uintptr_t address, std::size_t bytes, Visit visit) const;  // visit(tensor, row, extent)

  std::vector<Tensor> tensors_;
  std::vector<std::array<std::vector<std::uint64_t>, move_count>> last_;  // of each row: the step that moved it last
  std::uint64_t steps_ = 0;                                               // have begun, in all

  std::map<std::pair<std::size_t, std::size_t>, unsigned> places_;  // by offset and bytes

  Work before_;  // until then
  const void* kernel_ = nullptr;
  std::map<const void*, std::size_t> names_;  // of the launch: by pc
  LaunchWalk current_;
  std::vector<LaunchWalk> launches_;
};

}  // namespace simt
