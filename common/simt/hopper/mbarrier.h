// mbarriers: what device/mbarrier.h says of them. The bytes of a bulk copy count as come when it starts; what it brings
// is there when a thread has waited for the phase.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "simt/engine/wait.h"
#include "simt/hopper/bulk_copy.h"

namespace simt {

class Mbarrier final : public Awaited {
 public:
  Mbarrier(Worker& block, unsigned index, const void* address, int arrivals, const Site& made, unsigned maker)
      : Awaited(Orders::phase),
        block(block),
        index(index),
        address(address),
        maker(maker),
        arrivals_(arrivals),
        made_(made),
        lacking_(arrivals) {}

  std::string what(const Worker& worker) const override;
  std::string name() const;  // "mbarrier of FILE:LINE at byte 64 of dynamic shared memory"

  // By the current thread of `worker`, which may be of another block of the cluster.
  void arrive(int arrivals, int expected_bytes, const Wait& call, Worker& worker);
  void start(const BulkCopy& copy, Worker& worker);  // a load, whose bytes this phase waits for
  void start(const Copy& copy, Worker& worker);      // a cp.async by a thread that has yet to arrive in this phase
  void drop() { ++dropped_; }                        // one arrival less from the next phase on
  void wait(unsigned parity, const Wait& wait, Worker& worker);

  // What is wrong if the block ends now; empty if nothing is.
  std::string left_over(const Worker& worker) const;

  Worker& block;         // that it belongs to
  const unsigned index;  // of the block's mbarriers
  const void* const address;
  const unsigned maker;  // the thread that made it
  bool fenced = false;   // by that thread, since then
  unsigned phase() const { return phase_; }
  const Site& made() const { return made_; }
  bool is_as_made(int arrivals) const { return phase_ == 0 && arrivals == arrivals_ && lacking_ == arrivals_; }

 private:
  void complete_if_nothing_lacks(Worker& worker);
  void land(Worker& worker);
  std::string state() const;  // "phase 2: 1 of 2 arrivals have come, 8192 bytes have not"

  int arrivals_;
  Site made_;
  unsigned phase_ = 0;
  int lacking_;                    // arrivals
  std::int64_t bytes_ = 0;         // that are expected and have not come; below zero: have come and nobody expects them
  std::vector<BulkCopy> copies_;   // of the phase under way
  std::vector<BulkCopy> landing_;  // of complete ones that nobody has waited for
  PendingCopies cp_asyncs_{/*ordered_elsewhere=*/true};  // of the phase under way
  int dropped_ = 0;
  ThreadSet waiting_;
};

class Mbarriers {
 public:
  Mbarrier& make(const void* address, int arrivals, const Site& site, Worker& worker);
  Mbarrier* find(const void* address);
  std::deque<Mbarrier>& all() { return all_; }
  bool fenced_by(unsigned thread) const;  // it has made some, and passed a fence.mbarrier_init

 private:
  std::deque<Mbarrier> all_;  // Mbarriers stay where they are
};

}  // namespace simt
