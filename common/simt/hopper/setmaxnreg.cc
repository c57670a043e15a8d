#include "simt/hopper/setmaxnreg.h"

#include <algorithm>
#include <numeric>

#include "simt/engine/engine.h"

namespace simt {

std::string RegisterPool::what(const Worker&) const {
  return "the block has " + std::to_string(total_ * 32) + " registers, of which " + std::to_string(taken() * 32) +
         " are taken";
}

void RegisterPool::block_begins(unsigned threads) {
  warps_ = (threads + 31) / 32;
  const int each = std::min(256, static_cast<int>(65536 / 32 / std::max(warps_, 1u)) / 8 * 8);
  total_ = each * static_cast<int>(warps_);
  has_.fill(0);
  std::fill_n(has_.begin(), warps_, each);
  wants_.fill(0);
  calls_.fill(0);
  for (ThreadSet& waiting : waiting_) waiting.clear();
}

int RegisterPool::taken() const { return std::accumulate(has_.begin(), has_.end(), 0); }

bool RegisterPool::fits(unsigned warp) const { return taken() - has_[warp] + wants_[warp] <= total_; }

void RegisterPool::change(const Wait& wait, int registers, Worker& worker) {
  const unsigned warp = worker.current().number / 32;
  const bool increase = std::string_view(wait.name).ends_with("inc");
  struct Call {
    const Wait* wait;
    int registers;
  } call = {&wait, registers};
  // All lanes meet; one sees to it for the warp.
  worker.warp_collective(wait, &call, [](void* const lanes[32], unsigned) {
    const Call& call = *static_cast<const Call*>(lanes[0]);
    RegisterPool& pool = simt::worker->hopper().registers;
    const unsigned warp = simt::worker->current().number / 32;
    const bool increase = std::string_view(call.wait->name).ends_with("inc");
    if (increase ? call.registers < pool.has_[warp] : call.registers > pool.has_[warp])
      simt::worker->fail(cudaErrorLaunchFailure, &simt::worker->current(), text(call.wait->site),
                         std::string(call.wait->name) + " to " + std::to_string(call.registers) +
                             " registers: each thread has " + std::to_string(pool.has_[warp]));
    ++pool.calls_[warp];
    pool.wants_[warp] = call.registers;
  });
  if (wants_[warp] != 0 && fits(warp)) {
    has_[warp] = wants_[warp];
    wants_[warp] = 0;
    for (unsigned other = 0; !increase && other < warps_; ++other)
      if (waiting_[other].warps != 0 && fits(other)) {
        has_[other] = wants_[other];
        wants_[other] = 0;
        worker.let_go(*this, waiting_[other]);
      }
  }
  if (wants_[warp] != 0) worker.wait_for(wait, *this, waiting_[warp]);
}

std::string RegisterPool::left_over() const {
  for (unsigned warp = 0; warp < warps_; ++warp)
    if (calls_[warp] != calls_[warp / 4 * 4])
      return "setmaxnreg: warp " + std::to_string(warp) + " has executed it " + std::to_string(calls_[warp]) +
             " times, and warp " + std::to_string(warp / 4 * 4) + " of the same warpgroup " +
             std::to_string(calls_[warp / 4 * 4]);
  return "";
}

}  // namespace simt
