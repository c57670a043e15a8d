// The Recorder's part that makes a walk: it hears of every access, and of the waits between which the steps lie.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simt/walk.h"
#include "simt/walk_steps.h"

namespace simt {

struct Awaited;
struct BulkCopy;
struct Launch;
struct Site;
class Mbarrier;

// Threads and warps are told by their numbers in the block, shared memory by its offset in the shadow.
class WalkRecorder {
 public:
  explicit WalkRecorder(std::vector<Tensor> tensors);

  void launch_begins(const Launch& launch);
  void block_begins(uint3 index);
  void launch_ends(const std::string& kernel);

  void moves(unsigned thread, Move move, std::uintptr_t address, std::size_t bytes);
  void watch(unsigned thread, const char* name, std::int64_t row, std::int64_t column, float value);
  // Of a sum: instead of what this thread gave before in this step.
  void watch_share(unsigned thread, const char* name, std::int64_t row, std::int64_t column, float share);
  // What is new since the last time in the work of the launch until now belongs to this step of the warp.
  void works(unsigned warp, std::size_t step, const Work& work);
  std::size_t step_of(unsigned thread) const { return step_of_[thread]; }

  void made(const Mbarrier& mbarrier);
  void fills(const BulkCopy& copy, std::size_t offset, const Mbarrier& mbarrier);
  void sends(const BulkCopy& copy, std::size_t offset);
  void reads(unsigned thread, std::size_t offset, std::size_t size);
  void writes(unsigned thread, std::size_t offset, std::size_t size);
  void multiplies(unsigned thread, const std::vector<std::size_t>& a, const std::vector<std::size_t>& b);  // offsets

  void arrives(unsigned thread, int gate, bool waits);
  void completes(int gate);  // its phase that is under way
  void waited(unsigned thread, int gate, unsigned phase, const Site& site);
  unsigned arrived_at(unsigned thread) const { return arrived_at_[thread]; }  // the phase of a gate, the last time
  void meet(unsigned warp, unsigned lanes);  // they go on together, the last of them now in as many steps as the first
  void all_meet(const std::string& line);    // at the block's barrier on this line; or, if it is empty, the block ends

  std::vector<LaunchWalk> take() { return std::move(launches_); }

 private:
  WarpStep& step(unsigned thread) { return warps_[thread / 32].steps[step_of_[thread]]; }
  void steps_begin();
  unsigned place_of(const BulkCopy& copy, std::size_t offset);
  Phase& under_way(int gate);
  std::pair<std::uint32_t, RowList> rows_at(const std::vector<std::size_t>& offsets) const;  // of a tensor
  template <class Visit>
  void for_each_row(std::uintptr_t address, std::size_t bytes, Visit visit) const;  // visit(tensor, row)

  std::vector<Tensor> tensors_;
  std::vector<std::array<std::vector<std::uint64_t>, move_count>> last_;  // of each row: the step that moved it last
  std::vector<WarpSteps> warps_;                                          // since the last barrier of the block
  std::array<std::size_t, 1024> step_of_ = {};
  std::array<unsigned, 1024> arrived_at_ = {};
  std::uint64_t steps_ = 0;  // have begun, in all
  Gates gates_;              // of the block
  StepsSoFar so_far_;

  // What 16 bytes of shared memory hold. In a place, a row that is none is outside the tensor: zeros.
  struct Chunk {
    static constexpr std::uint32_t none = ~0u;
    std::uint32_t place = none, tensor = none, row = none;
  };
  std::vector<Chunk> chunks_;
  std::map<std::pair<std::size_t, std::size_t>, unsigned> places_;  // by offset and bytes

  Work before_;  // until then
  LaunchWalk current_;
  std::vector<LaunchWalk> launches_;
};

// The number of a gate.
int gate_of(const Awaited& awaited);

// The one that is told, between walk_begin() and walk_end(); else null.
WalkRecorder* walk_recorder();

}  // namespace simt
