// setmaxnreg: registers have no values here, but their number is kept: what a block gives back and takes must fit what
// its launch has.
#pragma once

#include <array>
#include <string>

#include "simt/engine/wait.h"

namespace simt {

class RegisterPool final : public Awaited {
 public:
  RegisterPool() : Awaited(Orders::nothing) {}
  std::string what(const Worker& worker) const override;

  void block_begins(unsigned threads);
  void change(const Wait& wait, int registers, Worker& worker);
  std::string left_over() const;  // what is wrong if the block ends now; empty if nothing is

 private:
  bool fits(unsigned warp) const;
  int taken() const;

  // Registers of each thread, by warp.
  unsigned warps_ = 0;
  int total_ = 0;
  std::array<int, max_warps> has_ = {};
  std::array<int, max_warps> wants_ = {};       // 0: nothing more
  std::array<unsigned, max_warps> calls_ = {};  // of setmaxnreg
  std::array<ThreadSet, max_warps> waiting_;
};

}  // namespace simt
