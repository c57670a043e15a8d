// The Recorder's part that makes a walk: it hears of every access, and of the barriers between which the steps lie.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simt/walk.h"

namespace simt {

struct Launch;

class WalkRecorder {
 public:
  explicit WalkRecorder(std::vector<Tensor> tensors);

  void launch_begins(const Launch& launch);
  void block_begins(uint3 index);
  void moves(Move move, std::uintptr_t address, std::size_t bytes);
  void watch(const char* name, std::int64_t row, std::int64_t column, float value);
  // Of a sum: instead of what this thread gave before in this step.
  void watch_share(unsigned thread, const char* name, std::int64_t row, std::int64_t column, float share);
  void step_ends(const std::string& until, const Work& work);
  void launch_ends(const std::string& kernel);

  std::vector<LaunchWalk> take() { return std::move(launches_); }

 private:
  struct Rows {
    std::vector<std::uint64_t> last_step;  // of each row, that moved it
    std::vector<std::size_t> of_this_step;
  };

  std::vector<Tensor> tensors_;
  std::vector<std::array<Rows, move_count>> rows_;  // of each tensor
  std::uint64_t step_ = 1;                          // a number that never repeats
  Watched watched_;
  std::map<std::string, std::map<std::pair<std::int64_t, std::int64_t>, std::map<unsigned, float>>> shares_;
  Work before_;  // this step
  LaunchWalk current_;
  std::vector<LaunchWalk> launches_;
};

// The one that is told, between walk_begin() and walk_end(); else null.
WalkRecorder* walk_recorder();

}  // namespace simt
