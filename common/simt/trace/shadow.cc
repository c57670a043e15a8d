#include "simt/trace/shadow.h"

#include <algorithm>
#include <bit>

#include "simt/engine/engine.h"
#include "simt/hopper/mbarrier.h"

namespace simt {

void Shadow::launch_begins(std::size_t bytes, unsigned blocks, unsigned warps) {
  const std::size_t lines = (bytes + line_bytes - 1) / line_bytes * blocks;
  warps_ = warps;
  if (blocks_ != blocks) {
    blocks_ = blocks;
    fenced_.assign(blocks * threads, false);
    met_.assign(blocks * threads, false);
    clock_.assign(blocks * threads, 0);
    seen_.assign(blocks * threads, {});
    seen_by_warp_.assign(blocks * 32, Clocks(blocks * (threads + mbarriers)));
    completed_in_.assign(blocks * mbarriers, 0);
  }
  learned_in_.assign(blocks * 32, 0);
  cells_.assign(lines * line_bytes, {});
  cell_bytes_.assign(lines, line_bytes);
  interval_ = 0;
}

void Shadow::block_begins() {
  first_interval_ = ++interval_;
  std::fill(clock_.begin(), clock_.end(), 0);
  std::fill(fenced_.begin(), fenced_.end(), false);
  std::fill(met_.begin(), met_.end(), false);
  for (auto& seen : seen_) seen.fill(0);
  reached_.clear();
  if (brought_.empty() && blocks_ == 1) return;
  for (Clocks& clocks : seen_by_warp_) std::fill(clocks.begin(), clocks.end(), 0);
  brought_.clear();
  complete_.clear();
  fences_.clear();
}

// What the threads of a block know of each other by a barrier, other blocks have to learn by what they tell those.
void Shadow::barrier(unsigned block) {
  if (blocks_ == 1) {
    ++interval_;
    return;
  }
  Clocks joined(seen_by_warp_[0].size());
  const unsigned first = block * 32, last = first + warps_;
  for (unsigned warp = first; warp < last; ++warp)
    for (std::size_t i = 0; i < joined.size(); ++i) joined[i] = std::max(joined[i], seen_by_warp_[warp][i]);
  for (unsigned thread = first * 32; thread < last * 32; ++thread) joined[thread] = ++clock_[thread];
  for (unsigned warp = first; warp < last; ++warp) {
    seen_by_warp_[warp] = joined;
    for (unsigned lane = 0; lane < 32; ++lane)
      std::copy_n(joined.begin() + warp * 32, 32, seen_[warp * 32 + lane].begin());
  }
}

Shadow::Clocks& Shadow::brought_to(const void* what) {
  Clocks& brought = brought_[what];
  if (brought.empty()) brought.resize(seen_by_warp_[0].size());
  return brought;
}

unsigned Shadow::number_of(const Mbarrier& mbarrier) {
  return mbarrier.index < mbarriers ? mbarrier.block.rank() * mbarriers + mbarrier.index : not_kept;
}

void Shadow::bring_phases(const void* what, unsigned thread) {
  Clocks& brought = brought_to(what);
  const Clocks& known = seen_by_warp_[thread / 32];
  for (std::size_t i = blocks_ * threads; i < known.size(); ++i) brought[i] = std::max(brought[i], known[i]);
}

void Shadow::meets(unsigned block, const Lanes& waiting) {
  for (unsigned warp = 0; warp < waiting.size(); ++warp)
    for (unsigned rest = waiting[warp]; rest != 0; rest &= rest - 1)
      met_[block * threads + warp * 32 + static_cast<unsigned>(std::countr_zero(rest))] = true;
}

bool Shadow::reaches(unsigned block, unsigned thread, const void* pc, Access access) {
  const auto known = seen_by_warp_[thread / 32].begin() + block * threads;
  reached_[block][thread] = {pc, interval_, clock_[thread], static_cast<std::uint16_t>(thread), access, false};
  return met_[thread] || std::any_of(known, known + warps_ * 32, [](std::uint32_t clock) { return clock != 0; });
}

std::optional<Shadow::Event> Shadow::may_still_be_reached(unsigned block) const {
  const auto found = reached_.find(block);
  if (found == reached_.end()) return {};
  for (const auto& [thread, event] : found->second) {
    bool known = false;
    for (unsigned warp = block * 32; warp < block * 32 + warps_ && !known; ++warp)
      known = seen_by_warp_[warp][thread] > event.clock;
    if (!known) return event;
  }
  return {};
}

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
  Clocks& brought = brought_to(what);
  const Clocks& known = seen_by_warp_[thread / 32];
  for (unsigned other = 0; other < brought.size(); ++other) brought[other] = std::max(brought[other], known[other]);
  for (unsigned lane = 0; lane < 32; ++lane) {  // what lanes of its warp told it by a __syncwarp
    std::uint32_t& of_lane = brought[thread / 32 * 32 + lane];
    of_lane = std::max(of_lane, seen_[thread][lane]);
  }
  brought[thread] = ++clock_[thread];
}

void Shadow::flag_written(const void* what, unsigned thread) {
  if (fenced_[thread]) arrive(what, thread);
}

void Shadow::flag_read(const void* what, unsigned thread) {
  const auto found = brought_.find(what);
  if (found == brought_.end()) return;
  Lanes waiting = {};
  waiting[thread % threads / 32] = 1u << (thread % 32);
  learn(found->second, thread / threads, waiting);
}

void Shadow::release(const void* what, unsigned block, const Lanes& waiting) {
  Clocks& brought = brought_to(what);
  learn(brought, block, waiting);
  std::fill(brought.begin(), brought.end(), 0);
}

void Shadow::learn(const Clocks& clocks, unsigned block, const Lanes& waiting) {
  if (clocks.empty()) return;  // nobody has come yet
  for (unsigned warp = block * 32; warp < block * 32 + waiting.size(); ++warp) {
    if (waiting[warp % 32] == 0) continue;
    Clocks& known = seen_by_warp_[warp];
    for (unsigned other = 0; other < clocks.size(); ++other) {
      if (clocks[other] <= known[other]) continue;
      known[other] = clocks[other];
      if (other / 32 != warp) learned_in_[warp] = interval_;
    }
    for (unsigned rest = waiting[warp % 32]; rest != 0; rest &= rest - 1) {
      auto& seen = seen_[warp * 32 + std::countr_zero(rest)];
      for (unsigned lane = 0; lane < 32; ++lane) seen[lane] = std::max(seen[lane], clocks[warp * 32 + lane]);
    }
  }
}

void Shadow::phase_completes(const void* what, unsigned number, std::uint32_t phases) {
  Clocks &brought = brought_to(what), &complete = complete_[what];
  complete.resize(brought.size());
  for (unsigned other = 0; other < brought.size(); ++other) complete[other] = std::max(complete[other], brought[other]);
  if (number != not_kept) phases_in(complete, number) = phases, completed_in_[number] = interval_;
  std::fill(brought.begin(), brought.end(), 0);
}

void Shadow::learn(const void* what, unsigned block, const Lanes& waiting) { learn(complete_[what], block, waiting); }

bool Shadow::knows_phase(unsigned thread, unsigned number, std::uint32_t phase) const {
  return number == not_kept || seen_by_warp_[thread / 32][blocks_ * threads + number] > phase;
}

bool Shadow::knows_the_last_phase(unsigned thread, unsigned number, std::uint32_t phases) const {
  return phases == 0 || number == not_kept || completed_in_[number] != interval_ ||
         knows_phase(thread, number, phases - 1);
}

std::uint32_t Shadow::warp_event(unsigned warp) {
  const auto first = clock_.begin() + warp * 32;
  const std::uint32_t event = *std::max_element(first, first + 32) + 1;
  std::fill(first, first + 32, event);
  return event;
}

bool Shadow::knows_warp_event(unsigned thread, unsigned warp, std::uint32_t event) const {
  const auto first = seen_by_warp_[thread / 32].begin() + warp * 32;
  return thread / 32 == warp || std::any_of(first, first + 32, [&](std::uint32_t seen) { return seen > event; });
}

void Shadow::proxy_fence(unsigned thread) {
  auto& fences = fences_[thread];
  if (fences.size() == fences_kept) fences.erase(fences.begin());
  fences.push_back({interval_, ++clock_[thread]});
}

bool Shadow::fenced(const Event& written, unsigned thread) const {
  const auto found = fences_.find(written.thread);
  if (found == fences_.end()) return false;
  bool all_after = found->second.size() == fences_kept;
  for (const Fence& fence : found->second) {
    const bool after =
        fence.interval > written.interval || (fence.interval == written.interval && fence.clock > written.clock);
    const bool before = fence.interval != interval_ || written.thread / 32 == thread / 32 ||
                        seen_by_warp_[thread / 32][written.thread] > fence.clock;
    if (after && before) return true;
    all_after = all_after && after;
  }
  return all_after;  // one that is not kept any more may have been between the two
}

bool Shadow::unordered(const Event& before, unsigned thread) const {
  if (before.interval != interval_ || before.thread == thread || before.thread == no_thread) return false;
  return unordered(before.clock, before.thread, thread);
}

bool Shadow::unordered(std::uint32_t clock, unsigned before, unsigned thread) const {
  if (before / 32 != thread / 32) return clock >= seen_by_warp_[thread / 32][before];
  return clock >= seen_[thread][before % 32];
}

bool Shadow::race(const Event& before, unsigned thread, Access access, bool is_flag) const {
  if (!unordered(before, thread) || (is_atomic(before.access) && is_atomic(access))) return false;
  // A flag between warps; within one, __syncwarp has to order even volatile accesses.
  const bool both = (is_flag || is_atomic(access)) && (before.is_flag || is_atomic(before.access));
  return !(both && before.thread / 32 != thread / 32 && fenced_[writes(access) ? thread : before.thread]);
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
                                              const void* pc, bool is_flag, bool may_not_change) {
  std::optional<Mistake> found;
  Event now = {pc, interval_, clock_[thread], static_cast<std::uint16_t>(thread), access, is_flag, true, false};
  for_each_cell(begin, size, [&](Cell& cell, std::size_t byte) {
    if (!found || found->other.is_unchanged) {
      std::optional<Mistake> here;
      if (cell.copy.interval != 0 && of_this_block(cell.copy))
        here = {Mistake::pending_copy, cell.copy, byte};
      else if (race(cell.written, thread, access, is_flag))
        here = {Mistake::race, cell.written, byte};
      else if (reads(access) && access != Access::exchange && !of_this_block(cell.written))
        here = {Mistake::uninitialised, {}, byte};
      if (!here && writes(access))
        for (const Event& read : cell.read)
          if (race(read, thread, access, is_flag)) here = {Mistake::race, read, byte};
      if (here) found = here;
    }
    if (writes(access)) {
      // A thread's own plain write still counts behind its atomic one: with those of others it would be a race.
      const Event& before = cell.written;
      now.is_first = !of_this_block(before);
      now.is_unchanged = may_not_change && !now.is_first && (before.is_unchanged || before.interval != interval_);
      const bool behind = is_atomic(access) && !is_atomic(before.access) && before.thread == thread &&
                          before.interval == interval_ && before.clock == now.clock;
      if (!behind) cell.written = now;
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

bool Shadow::changed(std::size_t begin, std::size_t size) {
  bool any_first = false;
  for_each_cell(begin, size, [&](Cell& cell, std::size_t) {
    cell.written.is_unchanged = false;
    any_first = any_first || cell.written.is_first;
  });
  return !any_first;
}

const void* Shadow::read_by(unsigned thread, std::size_t byte) const {
  const std::size_t width = cell_bytes_[byte / line_bytes];
  for (const Event& read : cells_[byte / width * width].read)
    if (read.interval == interval_ && read.thread == thread) return read.pc;
  return nullptr;
}

std::optional<Shadow::Mistake> Shadow::check_read(std::size_t begin, std::size_t size, unsigned thread) {
  std::optional<Mistake> found;
  for_each_cell(begin, size, [&](Cell& cell, std::size_t byte) {
    if (found) return;
    if (cell.copy.interval != 0 && of_this_block(cell.copy))
      found = {Mistake::pending_copy, cell.copy, byte};
    else if (race(cell.written, thread, Access::read))
      found = {Mistake::race, cell.written, byte};
    else if (!of_this_block(cell.written))
      found = {Mistake::uninitialised, {}, byte};
  });
  return found;
}

bool Shadow::some_written(std::size_t begin, std::size_t size) const {
  for (std::size_t byte = begin; byte < begin + size; byte += cell_bytes_[byte / line_bytes])
    if (of_this_block(cells_[byte].written)) return true;
  return false;
}

void Shadow::bulk_write(std::size_t begin, std::size_t size, const void* pc) {
  for_each_cell(begin, size, [&](Cell& cell, std::size_t) {
    cell.written = {pc, interval_, 0, no_thread, Access::write};
    cell.read = {};
  });
}

const Shadow::Event* Shadow::unfenced_write(std::size_t line_begin, unsigned thread) const {
  const std::size_t width = cell_bytes_[line_begin / line_bytes];
  for (std::size_t byte = line_begin; byte < line_begin + line_bytes; byte += width) {
    const Event& written = cells_[byte].written;
    if (of_this_block(written) && written.thread != no_thread && !fenced(written, thread)) return &written;
  }
  return nullptr;
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

void Shadow::copy_ends(std::size_t byte, std::size_t size, const void* owner) {
  for_each_cell(byte, size, [&](Cell& cell, std::size_t) {
    if (cell.copy_owner == owner) cell.copy = {};
  });
}

std::optional<Shadow::Mistake> Shadow::copy_lands(std::size_t byte, std::size_t size, unsigned thread, const void* pc,
                                                  const void* owner) {
  copy_ends(byte, size, owner);
  return access(byte, size, thread, Access::write, pc);
}

}  // namespace simt
