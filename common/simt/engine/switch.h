// How a thread that has to wait finds the next one. All of it is inlined into what the kernel calls (cuda/thread.cc).
#pragma once

#include <bit>
#include <cstring>
#include <utility>

#include "simt/engine/engine.h"

namespace simt {

// The thread to run next, now no longer ready and the current one: of this warp if one can run, else of the first
// warp in the schedule that has one. Null if there is none.
__forceinline__ Thread* Worker::next(unsigned w) {
  if (warps_[w].ready == 0) {
    if (warps_[w].converging != 0) return next_after_converging(w);
    if (warps_ready_ == 0) return nullptr;
    w = std::countr_zero(warps_ready_);
  }
  Warp& warp = warps_[w];
  const unsigned position = std::countr_zero(warp.ready);
  warp.ready &= warp.ready - 1;
  if (warp.ready == 0) warps_ready_ &= ~(1u << w);
  Thread& thread = threads_[w * 32 + position];
  current_ = &thread;
  thread.wait = nullptr;
  threadIdx = thread.index;
  next_turn();
  return &thread;
}

// The current thread waits from now on: until this is released and its turn has come.
__forceinline__ void Worker::begin_wait(const Wait& wait, const Awaited& awaited) {
  Thread& self = *current_;
  self.wait = &wait;
  self.awaited = &awaited;
}

// Others run, of that warp first, until the current thread's turn has come: it waits, or has just been let go. Whose
// turn it is now:
__forceinline__ Turn Worker::turn(unsigned next_warp) {
  Thread& self = *current_;
  Thread* following = next(next_warp);
  if (following == nullptr) following = next_by_another_block();
  if (following == &self) return {};
  if (following != nullptr && following->fiber == nullptr) start_on_a_fiber(*following);
  return {&self.fiber->context, following != nullptr ? &following->fiber->context : &main_.context};
}

__forceinline__ void Worker::suspend(unsigned next_warp) { make_room(turn(next_warp)); }

// Lets those go that wait for this.
__forceinline__ void Worker::release(const Awaited& awaited, ThreadSet& waiting) {
  observe(&Observer::released, awaited.orders, &awaited, waiting, *this);
  for (unsigned warps = waiting.warps; warps != 0; warps &= warps - 1) {
    const unsigned w = std::countr_zero(warps);
    warps_[w].ready |= std::exchange(waiting.positions[w], 0);
  }
  warps_ready_ |= std::exchange(waiting.warps, 0);
}

__forceinline__ Turn Worker::barrier(const Wait& wait, bool predicate) {
  const Thread& self = *current_;
  const Site& site = wait.site;
  begin_wait(wait, barrier_);
  barrier_.waiting.add(self.warp, self.position);
  if (barrier_.arrived == 0)
    barrier_.site = site;
  else if (site.line != barrier_.site.line || site.file != barrier_.site.file)
    barrier_.divergent |= !(site == barrier_.site);
  else if (!observers_.empty() && site.return_address != barrier_.site.return_address)  // two calls on one line
    barrier_.divergent = true;
  ++barrier_.arrived;
  barrier_.yes += predicate;
  const bool last = barrier_.arrived == live_;
  if (last && !makes_room_) release_barrier();
  return turn(last && !makes_room_ ? first_ready_warp() : self.warp);  // after a barrier the schedule starts over
}

__forceinline__ Turn Worker::collective(const Wait& wait, unsigned mask, void* operand, Compute compute,
                                        bool all_must_come) {
  Thread& self = *current_;
  Warp& warp = warps_[self.warp];
  const unsigned bit = 1u << self.lane;
  if (!(mask & bit)) not_in_mask(wait, mask);

  Collective* collective = nullptr;
  for (unsigned used = warp.collectives_used; used != 0; used &= used - 1)
    if (Collective& candidate = warp.collectives[std::countr_zero(used)]; candidate.mask == mask)
      collective = &candidate;
  if (collective == nullptr) collective = &start_collective(warp, wait.name, mask, compute, all_must_come);
  if (collective->compute != compute ||
      (collective->name != wait.name && std::strcmp(collective->name, wait.name) != 0))
    different_collectives(warp, *collective, wait);
  begin_wait(wait, *collective);
  warp.operands[self.lane] = operand;
  const unsigned arrived = collective->arrived |= bit;
  if ((mask & warp.live & ~arrived) == 0) complete(warp, *collective);
  return turn(self.warp);
}

__forceinline__ Collective& Worker::start_collective(Warp& warp, const char* name, unsigned mask, Compute compute,
                                                     bool all_must_come) {
  const int unused = std::countr_one(warp.collectives_used);
  warp.collectives_used |= 1u << unused;
  Collective& collective = warp.collectives[unused];
  collective.starts(name, warp.number, mask, compute, all_must_come);
  return collective;
}

}  // namespace simt
