// Asynchronous copies from global to shared memory. From its start until it lands, a copy belongs to what completes it,
// whichever thread started it. It lands when that is waited for and no sooner, so that whoever forgets the wait reads
// what was there before.
#pragma once

#include <cstddef>
#include <vector>

namespace simt {

class Worker;

struct Copy {
  void* shared;
  const void* global;
  unsigned bytes;
  unsigned source_bytes;  // the rest becomes zero
  unsigned thread;        // that started it, by its number in the block
  const void* pc;         // where
};

// The copies that one thing completes, in the order of their start.
class PendingCopies {
 public:
  // `ordered_elsewhere`: who sees what a copy has brought follows from other events, not from which thread lands it.
  explicit PendingCopies(bool ordered_elsewhere = false) : ordered_elsewhere(ordered_elsewhere) {}

  void start(const Copy& copy, Worker& worker);
  void land(std::size_t count, Worker& worker);  // the oldest
  void forget() { copies_.clear(); }             // they never land
  const Copy* oldest() const { return copies_.empty() ? nullptr : &copies_.front(); }
  std::size_t size() const { return copies_.size(); }

  const bool ordered_elsewhere;

 private:
  std::vector<Copy> copies_;
};

// Groups of things that were started one after the other, and that end group by group.
class Groups {
 public:
  void commit(std::size_t started);        // all that was started and has not ended, but for earlier groups, is a group
  std::size_t finish(int pending_groups);  // how many things end with all but so many of the newest groups
  void forget();

 private:
  std::vector<std::size_t> sizes_;
  std::size_t in_groups_ = 0;  // the sum of that
};

// What completes cp.async: a thread's groups, one after the other.
class CopyGroups {
 public:
  void start(const Copy& copy, Worker& worker) { copies_.start(copy, worker); }
  void commit() { groups_.commit(copies_.size()); }  // those since the last commit become a group
  void wait(int pending_groups, Worker& worker) { copies_.land(groups_.finish(pending_groups), worker); }
  void forget();
  const Copy* oldest() const { return copies_.oldest(); }

 private:
  PendingCopies copies_;
  Groups groups_;
};

// A cp.async of the current thread, by the kernel at `pc`; fails if it cannot be.
Copy cp_async_of(Worker& self, const void* pc, void* shared, const void* global, std::size_t bytes,
                 std::size_t source_bytes);
void start_cp_async(Worker& self, const void* pc, void* shared, const void* global, std::size_t bytes,
                    std::size_t source_bytes);

}  // namespace simt
