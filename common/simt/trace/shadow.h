// What is known about every byte of a block's shared memory: who wrote and read it last, and whether a cp.async to it
// is on its way. From that follows whether an access is a mistake:
//
//   race           two threads access a byte, at least one of them writes, and nothing orders the two: no barrier lies
//                  between them, no named barrier at which the one arrived and for which the other waited, nor, for
//                  lanes of one warp, a __syncwarp that both take part in
//   pending copy   the byte is read or written before the thread that started its cp.async has waited for it
//   uninitialised  the byte is read and nobody has written it
//
// A read beside a store of what was there already is told apart (unchanged.h).
//
// Shuffles and other collectives order nothing, as in CUDA.
//
// The blocks of a cluster have one Shadow: their shared memory lies one after the other, and thread t of the block of
// rank r is number 1024 r + t. (A block alone has rank 0.)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "simt/engine/observer.h"
#include "simt/engine/wait.h"

namespace simt {

inline constexpr char ran_in_step[] =
    " (two lanes of one warp: up to compute capability 6 they ran in step, and this was in order; since then not even "
    "they are, without a __syncwarp() between)";

class Shadow {
 public:
  struct Event {
    const void* pc = nullptr;
    std::uint32_t interval = 0;  // between which barriers; 0: never
    std::uint32_t clock = 0;     // how many times the thread had passed a __syncwarp or a named barrier
    std::uint16_t thread = 0;    // number in the cluster
    Access access = Access::read;
    bool is_flag = false;       // a volatile access by or for a thread that uses fences
    bool is_first = true;       // a store to where nothing was
    bool is_unchanged = false;  // a store of what has been there since the block's last barrier
  };

  struct Mistake {
    enum Kind { race, pending_copy, uninitialised } kind;
    Event other;  // the earlier access of a race, the cp.async of a pending copy
    std::size_t byte;
  };

  // So many bytes and warps has each block of a cluster.
  void launch_begins(std::size_t bytes, unsigned blocks, unsigned warps);
  void block_begins();  // or a cluster
  void barrier(unsigned block);
  void syncwarp(unsigned warp, unsigned lanes);

  // Something at which threads arrive (a named barrier), by its address: when all have come, those that wait are
  // released, [warp]: lanes.
  void arrive(const void* what, unsigned thread);
  void release(const void* what, unsigned block, const Lanes& waiting);

  // The same of something that goes through phases (the cluster's barrier; an mbarrier, by its address and its number
  // in the cluster): those that wait for a
  // phase, now or when it is complete, learn what those knew that arrived, and what bulk copies brought to it.
  void phase_completes(const void* what, unsigned number = not_kept, std::uint32_t phases = 0);
  void learn(const void* what, unsigned block, const Lanes& waiting);
  static constexpr unsigned not_kept = ~0u;
  static unsigned number_of(const Mbarrier& mbarrier);
  // A copy for that mbarrier, started by the thread, can only come after the phases of which the thread knows.
  void bring_phases(const void* what, unsigned thread);
  bool knows_phase(unsigned thread, unsigned number, std::uint32_t phase) const;
  // Whether the thread knows of every phase that is complete: else what it does now might as well have come before the
  // end of the last one.
  bool knows_the_last_phase(unsigned thread, unsigned number, std::uint32_t phases) const;

  // The thread has done something to the shared memory of another block. Whether it knew that this block had started;
  // and what of that kind the block cannot know to be over when it ends.
  void meets(unsigned block, const Lanes& waiting);  // these threads have waited for all blocks
  bool reaches(unsigned block, unsigned thread, const void* pc, Access access);
  std::optional<Event> may_still_be_reached(unsigned block) const;

  // The access is noted; the first mistake, if there is one, is returned, as a rule: a read beside a store that is
  // unchanged only if there is no other. `may_not_change`: of a store, for which changed() is called if it does.
  std::optional<Mistake> access(std::size_t byte, std::size_t size, unsigned thread, Access access, const void* pc,
                                bool is_flag = false, bool may_not_change = false);
  bool changed(std::size_t byte, std::size_t size);  // whether something was there before

  // Where the thread has read this byte since the block's last barrier; null if nowhere.
  const void* read_by(unsigned thread, std::size_t byte) const;

  // A thread has passed a fence. From then on what it writes by an atomic function or a volatile store is a flag: who
  // reads it so knows what that thread did before. `what`: the flag's address, in any memory.
  void fence(unsigned thread) { fenced_[thread] = true; }
  void flag_written(const void* what, unsigned thread);
  void flag_read(const void* what, unsigned thread);

  // For global_shadow.h: in an interval of the block, whether nothing orders what that thread did when its clock was
  // so.
  std::uint32_t clock_of(unsigned thread) const { return clock_[thread]; }
  bool unordered(std::uint32_t clock, unsigned before, unsigned thread) const;
  // Whether the thread's warp has learned of other warps since the block's last barrier: by a named barrier, say, or a
  // flag.
  bool knows_other_warps(unsigned thread) const { return learned_in_[thread / 32] == interval_; }

  // Whether this block has written any of these bytes. If it has, the others may be the padding of a structure.
  bool some_written(std::size_t begin, std::size_t size) const;
  // What async_shadow.h needs. The mistake that a read would be, without noting it; a write by a bulk copy, of which
  // async_shadow.h knows who has waited for it.
  std::optional<Mistake> check_read(std::size_t byte, std::size_t size, unsigned thread);
  void bulk_write(std::size_t byte, std::size_t size, const void* pc);
  std::uint32_t interval() const { return interval_; }
  // A warp has ended what its lanes did together: the number of that event, after which is what any of the lanes tells
  // others.
  std::uint32_t warp_event(unsigned warp);
  bool knows_warp_event(unsigned thread, unsigned warp, std::uint32_t event) const;
  // A fence between the proxies; and of the 16 bytes here, a write by a thread that none lies behind and before what
  // `thread` does now. Null if there is no such write.
  void proxy_fence(unsigned thread);
  const Event* unfenced_write(std::size_t line_begin, unsigned thread) const;

  // An asynchronous copy counts as written when it starts and again when it lands, each time by the thread that sees to
  // it. In between it belongs to `owner`, an address.
  std::optional<Mistake> copy_starts(std::size_t byte, std::size_t size, unsigned thread, const void* pc,
                                     const void* owner);
  void copy_ends(std::size_t byte, std::size_t size, const void* owner);  // it lands, and its start was the write
  std::optional<Mistake> copy_lands(std::size_t byte, std::size_t size, unsigned thread, const void* pc,
                                    const void* owner);

 private:
  // Of bytes that have always been accessed together.
  struct Cell {
    Event written;
    std::array<Event, 2> read;  // the latest, and one of another warp or at least another thread
    Event copy;                 // pending unless its interval is 0
    const void* copy_owner = nullptr;
  };

  static constexpr std::uint16_t no_thread = 0xffff;  // has written what a bulk copy brought

  bool of_this_block(const Event& event) const { return event.interval >= first_interval_; }
  bool unordered(const Event& before, unsigned thread) const;
  bool fenced(const Event& written, unsigned thread) const;
  bool race(const Event& before, unsigned thread, Access access, bool is_flag = false) const;
  template <class Visit>
  void for_each_cell(std::size_t begin, std::size_t size, Visit visit);

  // A line of 16 bytes is one cell until a narrower access divides it, and so on down to single bytes. A cell lies at
  // the place of its first byte.
  static constexpr std::size_t line_bytes = 16;
  std::vector<Cell> cells_;               // [byte]
  std::vector<std::uint8_t> cell_bytes_;  // [line]
  std::uint32_t interval_ = 0;
  std::uint32_t first_interval_ = 1;  // of this block
  unsigned blocks_ = 0, warps_ = 0;   // of a cluster, of a block
  std::vector<std::uint8_t> fenced_, met_;
  std::vector<std::uint32_t> clock_;
  std::vector<std::array<std::uint32_t, 32>> seen_;  // [thread][lane]: that lane's clock, as far as ordered

  // The same across warps, where named barriers are the only order between two barriers of the whole block.
  static constexpr unsigned threads = max_block_threads, mbarriers = 64;
  using Clocks = std::vector<std::uint32_t>;  // [thread], and how many phases of each mbarrier
  void learn(const Clocks& clocks, unsigned block, const Lanes& waiting);
  Clocks& brought_to(const void* what);
  std::uint32_t& phases_in(Clocks& clocks, unsigned number) const { return clocks[blocks_ * threads + number]; }

  std::vector<Clocks> seen_by_warp_;
  std::vector<std::uint32_t> learned_in_;  // [warp]: the interval in which it last learned of another one
  std::unordered_map<const void*, Clocks>
      brought_;  // of each that this block has used: what those that have arrived know
  std::unordered_map<const void*, Clocks> complete_;  // and what was known when the phases before were complete
  std::vector<std::uint32_t> completed_in_;           // the interval in which the last of them was
  std::unordered_map<unsigned, std::unordered_map<unsigned, Event>> reached_;  // [block][thread]: the latest

  struct Fence {
    std::uint32_t interval = 0, clock = 0;
  };
  static constexpr unsigned fences_kept = 8;
  std::unordered_map<unsigned, std::vector<Fence>> fences_;  // [thread]: the latest
};

}  // namespace simt
