#include "simt/shadow.h"

#include <algorithm>
#include <bit>

namespace simt {

void Shadow::launch_begins(std::size_t bytes) {
  const std::size_t lines = (bytes + line_bytes - 1) / line_bytes;
  cells_.assign(lines * line_bytes, {});
  cell_bytes_.assign(lines, line_bytes);
  interval_ = 0;
}

void Shadow::block_begins() {
  first_interval_ = ++interval_;
  clock_.fill(0);
  for (auto& seen : seen_) seen.fill(0);
  if (brought_.empty()) return;
  for (Clocks& clocks : seen_by_warp_) clocks.fill(0);
  brought_.clear();
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

void Shadow::arrive(const void* what, unsigned thread) {
  Clocks& brought = brought_[what];
  const Clocks& known = seen_by_warp_[thread / 32];
  for (unsigned other = 0; other < brought.size(); ++other) brought[other] = std::max(brought[other], known[other]);
  brought[thread] = ++clock_[thread];
}

void Shadow::release(const void* what, const std::array<unsigned, 32>& waiting) {
  Clocks& brought = brought_[what];
  for (unsigned warp = 0; warp < waiting.size(); ++warp) {
    if (waiting[warp] == 0) continue;
    Clocks& known = seen_by_warp_[warp];
    for (unsigned other = 0; other < brought.size(); ++other) known[other] = std::max(known[other], brought[other]);
    for (unsigned rest = waiting[warp]; rest != 0; rest &= rest - 1) {
      auto& seen = seen_[warp * 32 + std::countr_zero(rest)];
      for (unsigned lane = 0; lane < 32; ++lane) seen[lane] = std::max(seen[lane], brought[warp * 32 + lane]);
    }
  }
  brought.fill(0);
}

bool Shadow::unordered(const Event& before, unsigned thread) const {
  if (before.interval != interval_ || before.thread == thread) return false;
  if (before.thread / 32 != thread / 32) return before.clock >= seen_by_warp_[thread / 32][before.thread];
  return before.clock >= seen_[thread][before.thread % 32];
}

bool Shadow::race(const Event& before, unsigned thread, Access access) const {
  return unordered(before, thread) && !(is_atomic(before.access) && is_atomic(access));
}

// Calls visit(cell, its first byte) for the cells of an access, having divided those that reach beyond it.
template <class Visit>
void Shadow::for_each_cell(std::size_t begin, std::size_t size, Visit visit) {
  for (const std::size_t end = begin + size; begin < end;) {
    const std::size_t line = begin / line_bytes, line_end = (line + 1) * line_bytes, stop = std::min(end, line_end);
    const std::size_t ends = line_bytes | begin | stop, widest = ends & -ends;  // that has no end inside a cell
    std::uint8_t& width = cell_bytes_[line];
    for (; width > widest; width /= 2)
      for (std::size_t i = line * line_bytes; i < line_end; i += width) cells_[i + width / 2] = cells_[i];
    for (; begin < stop; begin += width) visit(cells_[begin], begin);
  }
}

std::optional<Shadow::Mistake> Shadow::access(std::size_t begin, std::size_t size, unsigned thread, Access access,
                                              const void* pc) {
  std::optional<Mistake> found;
  const Event now = {pc, interval_, clock_[thread], static_cast<std::uint16_t>(thread), access};
  for_each_cell(begin, size, [&](Cell& cell, std::size_t byte) {
    if (!found) {
      if (cell.copy.interval != 0 && of_this_block(cell.copy))
        found = {Mistake::pending_copy, cell.copy, byte};
      else if (race(cell.written, thread, access))
        found = {Mistake::race, cell.written, byte};
      else if (reads(access) && !of_this_block(cell.written))
        found = {Mistake::uninitialised, {}, byte};
      if (!found && writes(access))
        for (const Event& read : cell.read)
          if (race(read, thread, access)) found = {Mistake::race, read, byte};
    }
    if (writes(access)) {
      cell.written = now;
    } else {
      // Keeps a read of another warp if there is one: then every later write races with one of the two.
      const Event& latest = cell.read[0];
      const bool other_warp_kept = cell.read[1].interval == interval_ && cell.read[1].thread / 32 != thread / 32;
      if (latest.interval == interval_ && latest.thread != thread &&
          (latest.thread / 32 != thread / 32 || !other_warp_kept))
        cell.read[1] = latest;
      cell.read[0] = now;
    }
  });
  return found;
}

std::optional<Shadow::Mistake> Shadow::copy_starts(std::size_t byte, std::size_t size, unsigned thread, const void* pc,
                                                   const void* owner) {
  const auto found = access(byte, size, thread, Access::write, pc);
  for_each_cell(byte, size, [&](Cell& cell, std::size_t) {
    cell.copy = cell.written;
    cell.copy_owner = owner;
  });
  return found;
}

std::optional<Shadow::Mistake> Shadow::copy_lands(std::size_t byte, std::size_t size, unsigned thread, const void* pc,
                                                  const void* owner) {
  for_each_cell(byte, size, [&](Cell& cell, std::size_t) {
    if (cell.copy_owner == owner) cell.copy = {};
  });
  return access(byte, size, thread, Access::write, pc);
}

}  // namespace simt
