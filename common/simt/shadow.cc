#include "simt/shadow.h"

#include <algorithm>
#include <bit>

namespace simt {

void Shadow::launch_begins(std::size_t bytes) {
  bytes_.assign(bytes, {});
  interval_ = 0;
}

void Shadow::block_begins() {
  first_interval_ = ++interval_;
  clock_.fill(0);
  for (auto& seen : seen_) seen.fill(0);
  if (!named_) return;
  named_ = false;
  for (Clocks& clocks : seen_by_warp_) clocks.fill(0);
  for (Clocks& clocks : brought_) clocks.fill(0);
}

void Shadow::barrier() { ++interval_; }

void Shadow::syncwarp(unsigned warp, unsigned lanes) {
  std::array<std::uint32_t, 32> joined = {};
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const unsigned lane = std::countr_zero(rest), thread = warp * 32 + lane;
    for (unsigned other = 0; other < 32; ++other) joined[other] = std::max(joined[other], seen_[thread][other]);
  }
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const unsigned lane = std::countr_zero(rest);
    joined[lane] = ++clock_[warp * 32 + lane];
  }
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) seen_[warp * 32 + std::countr_zero(rest)] = joined;
}

void Shadow::arrive(unsigned barrier, unsigned thread) {
  named_ = true;
  Clocks& brought = brought_[barrier];
  const Clocks& known = seen_by_warp_[thread / 32];
  for (unsigned other = 0; other < brought.size(); ++other) brought[other] = std::max(brought[other], known[other]);
  brought[thread] = ++clock_[thread];
}

void Shadow::release(unsigned barrier, const std::vector<unsigned>& waiting) {
  Clocks& brought = brought_[barrier];
  for (const unsigned thread : waiting) {
    Clocks& known = seen_by_warp_[thread / 32];
    for (unsigned other = 0; other < brought.size(); ++other) known[other] = std::max(known[other], brought[other]);
    for (unsigned lane = 0; lane < 32; ++lane)
      seen_[thread][lane] = std::max(seen_[thread][lane], brought[thread / 32 * 32 + lane]);
  }
  brought.fill(0);
}

bool Shadow::unordered(const Event& before, unsigned thread) const {
  if (before.interval != interval_ || before.thread == thread) return false;
  if (before.thread / 32 != thread / 32) return before.clock >= seen_by_warp_[thread / 32][before.thread];
  return before.clock >= seen_[thread][before.thread % 32];
}

std::optional<Shadow::Mistake> Shadow::access(std::size_t begin, std::size_t size, unsigned thread, Access access,
                                              const void* pc) {
  std::optional<Mistake> found;
  const Event now = {pc, interval_, clock_[thread], static_cast<std::uint16_t>(thread), access};
  for (std::size_t i = begin; i < begin + size; ++i) {
    Byte& byte = bytes_[i];
    if (!found) {
      if (byte.copy.interval != 0 && of_this_block(byte.copy))
        found = {Mistake::pending_copy, byte.copy, i};
      else if (unordered(byte.written, thread) && !(access == Access::atomic && byte.written.access == Access::atomic))
        found = {Mistake::race, byte.written, i};
      else if (access != Access::write && !of_this_block(byte.written))
        found = {Mistake::uninitialised, {}, i};
      if (!found && access != Access::read)
        for (const Event& read : byte.read)
          if (unordered(read, thread)) found = {Mistake::race, read, i};
    }
    if (access != Access::read) {
      byte.written = now;
    } else {
      // Keeps a read of another warp if there is one: then every later write races with one of the two.
      const Event& latest = byte.read[0];
      const bool other_warp_kept = byte.read[1].interval == interval_ && byte.read[1].thread / 32 != thread / 32;
      if (latest.interval == interval_ && latest.thread != thread &&
          (latest.thread / 32 != thread / 32 || !other_warp_kept))
        byte.read[1] = latest;
      byte.read[0] = now;
    }
  }
  return found;
}

std::optional<Shadow::Mistake> Shadow::copy_starts(std::size_t byte, std::size_t size, unsigned thread,
                                                   const void* pc) {
  const auto found = access(byte, size, thread, Access::write, pc);
  for (std::size_t i = byte; i < byte + size; ++i) bytes_[i].copy = bytes_[i].written;
  return found;
}

std::optional<Shadow::Mistake> Shadow::copy_lands(std::size_t byte, std::size_t size, unsigned thread,
                                                  const void* pc) {
  for (std::size_t i = byte; i < byte + size; ++i)
    if (bytes_[i].copy.thread == thread) bytes_[i].copy = {};
  return access(byte, size, thread, Access::write, pc);
}

}  // namespace simt
