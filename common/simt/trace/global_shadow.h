// What is known about every byte of global memory: whether anybody has written it, and who wrote and read it last. From
// that follows whether an access is a mistake:
//
//   unwritten   none of the bytes that are read has been written, by a kernel or a copy
//   race        two threads access a byte, at least one of them writes, not both by atomic functions or volatile
//               accesses, and nothing orders the two; of lanes of one warp also by volatile ones, if no thread uses
//               fences, and the lane that reads keeps elements of its own in volatile memory, too: a reduction that
//               relies on lanes running in step. (A lane that looks at a flag, or sets it, does not.)
//   read only   __ldg() reads what this launch has written, which no order makes right
//
// No mistake, but worth a note: several threads store the same value; or one reads what another stores, where all
// stores of that launch by the same instruction store one value, and each of them comes behind its thread's look at the
// old one, or several threads store to one place, as at the next level of a graph, or it stores to one place alone, to
// which no other instruction stores another value, and the reader only compares what it finds with a constant, as a
// flag that ends a search. (The reader finds the old value or that one.) What the instruction stores is known when the
// launch ends. And one reads beside a store of what was there already (unchanged.h).
//
// Within a block, accesses are ordered as those of shared memory are (shadow.h). Between blocks of a launch, only by
// the grid's barrier, and by a flag: one thread writes (an atomic function or a volatile store) what another one then
// reads so, and what lies before the first one's fence comes before what lies behind the other's read. Whole launches
// are ordered by their streams. In doubt an access counts as ordered: a false alarm would be worse than a silence.
//
// Of constants, and of memory of the host that the device reaches, races are found in the same way.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "simt/engine/observer.h"
#include "simt/trace/shadow.h"
#include "simt/trace/stream_order.h"
#include "simt/trace/unchanged.h"

namespace simt {

class GlobalShadow {
 public:
  explicit GlobalShadow(UnchangedStores& unchanged) : unchanged_(unchanged) {}

  // The host's part. Managed memory counts as written: nobody sees what the host does there.
  void allocated(const void* address, std::size_t bytes, bool written);
  void freed(const void* address, std::size_t bytes);
  void forget(const void* address, std::size_t bytes);  // it is new memory, though other memory was there before
  void host_writes(const void* to, std::size_t bytes);
  bool any_written(const void* from, std::size_t bytes);
  // Of these bytes: how many pieces nobody has written, and the longest of them.
  struct Unwritten {
    std::size_t pieces = 0, first = 0, bytes = 0;
  };
  Unwritten unwritten(const void* from, std::size_t bytes);
  void host_copies(const void* to, const void* from, std::size_t bytes);  // both on the device

  StreamOrder& streams() { return streams_; }
  // The next launch, or copy, is one of this stream: its number there.
  std::uint32_t stream_begins(const void* stream, const void* kernel, std::function<std::string()> what);
  // `noted`: what comes later need not come after it.
  void copy_access(const void* memory, std::size_t bytes, bool writes, bool noted);
  // Where there are several streams: whether anything has been written there for which the host has not waited; `used`:
  // or read.
  bool awaited(const void* memory, std::size_t bytes, bool used);
  void host_has_waited() { awaited_from_ = first_slice_ + static_cast<std::uint32_t>(slices_.size()); }  // for all
  // Host code knows now that what wrote there last is done.
  void host_sees(const void* flag);
  // cudaMallocAsync, cudaFreeAsync: `what`, in this stream, which comes before, or after, all that is done there.
  void allocated_in(const void* stream, const void* memory, std::size_t bytes, std::function<std::string()> what);
  void freed_in(const void* stream, const void* memory, std::size_t bytes, std::function<std::string()> what);

  void launch_begins();
  void launch_ends();
  void block_begins(std::uint64_t block);
  void barrier();       // of the block, and whatever else begins a new interval there
  void grid_barrier();  // the block has come to it, and all others
  void fence(unsigned thread);

  // The access is noted; what is wrong with it is said (findings.h). `flag`: by an atomic function, or volatile.
  void access(const MemoryAccess& access, const Shadow& shadow);
  void read_only(const MemoryAccess& access);  // by __ldg()
  // Another access has happened: that of the store before is done, whose value is known now.
  void settle() {
    if (stored_.now.size != 0) compare_stored();
  }

  // The part that belongs to one block, while others run.
  struct Parked;
  Parked park() const;
  void unpark(const Parked& parked);

 private:
  // Whether what a store has left is another value than before the launch; `earlier`: only for other blocks, since a
  // barrier of its own block lies between the change and the store.
  enum class Change : std::uint8_t { yes, earlier, no };
  struct Event {
    std::int32_t pc = 0;      // from an address in this program
    std::uint32_t slice = 0;  // 0: never
    std::uint32_t clock = 0;  // of the thread (shadow.h)
    std::uint16_t thread = 0;
    Access access = Access::read;
    bool is_volatile : 1 = false;
    Change change : 2 = Change::yes;
    bool of_block : 1 = false;
  };
  // Of four bytes, or of one where bytes are accessed.
  struct Cell {
    Event written;
    std::array<Event, 2> read;  // the latest, and of those before it the one that matters most (note_read)
  };
  static constexpr std::size_t page_bytes = 4096, most_pages = 40000;
  using Bytes = std::bitset<page_bytes>;
  // Of streams that nothing orders, reads for which their cells have no room: one of them, and where they all are.
  struct Readers {
    Event one;
    Bytes where;
  };
  struct Page {
    std::vector<Cell> cells;
    bool bytes = false;  // a cell has one
    std::array<std::uint64_t, 64> written = {};
    std::vector<Readers> readers;  // by operation
    // Plain writes that an atomic access has covered, with which those of other blocks or streams may still race.
    std::unordered_map<std::uintptr_t, Event> covered;

    std::size_t step() const { return bytes ? 1 : 4; }
    Cell& cell(std::uintptr_t address) { return cells[address % page_bytes / step()]; }
    template <class Look>
    void each_read(std::uintptr_t address, const Look& look) {
      for (const Event& read : cell(address).read) look(read);
      for (const Readers& more : readers)
        if (more.where[address % page_bytes]) look(more.one);
    }
  };

  // A piece of a block's time, between two barriers or fences.
  struct Slice {
    std::uint64_t block;
    std::uint32_t interval, epoch;
  };

  // What a thread told others by a flag: all that lies before its warp's last fence; of other warps' what a barrier lay
  // before its own fence, or a fence of theirs before a barrier; or all, if other means told it of them.
  struct Release {
    std::uint32_t version, fence_slice, fence_interval, earlier_fence_interval, acquired;
    std::uint16_t thread;
    bool everything;
  };
  struct Flag {
    std::uint32_t version = 0;
    std::unordered_map<std::uint64_t, std::vector<Release>> releases;  // [block]
  };
  // What a thread has written to volatile memory, without an atomic function.
  struct Stores {
    std::uint32_t interval;
    std::uintptr_t first;
    bool others;  // elsewhere
  };
  struct Acquired {
    std::uintptr_t flag;
    std::uint32_t version, interval;
    std::uint16_t thread;
  };

 public:
  struct Parked {
    std::uint64_t block;
    std::uint32_t epoch, last_fence_interval, earlier_fence_interval;
    std::unordered_map<unsigned, std::uint32_t> fences, fence_slices;
    std::uint32_t interval;
  };

 private:
  Page* page_at(std::uintptr_t address, bool make);
  void new_slice(std::uint32_t interval);
  bool is_written(std::uintptr_t address, std::size_t bytes);
  void mark_written(std::uintptr_t address, std::size_t bytes, bool now);
  const Slice& slice_of(const Event& event) const { return slices_[event.slice - first_slice_]; }
  bool unordered(const Event& before, const MemoryAccess& now, const Shadow& shadow);
  bool relies_on_step(const Event& before, const MemoryAccess& now) const;
  bool has_heard(std::uint64_t block, std::uint64_t other) const;
  bool told(const Event& before, const Slice& its, std::uint16_t thread, bool everything);
  void synchronise(const MemoryAccess& access, const Shadow& shadow);
  void race(const Event& before, const MemoryAccess& now, uint3 block, std::uint64_t block_number);
  std::string message_of(const Event& before, const MemoryAccess& now, uint3 block, std::uint64_t block_number) const;
  void note_store(const MemoryAccess& access, const Cell& cell);
  void compare_stored();
  void compare_set(const MemoryAccess& now);
  void store_over(const Event& before, const MemoryAccess& now, bool same);
  Change change_before(const Event& written) const;
  bool finds_no_change(const Event& written) const;
  void unchanged(const Event& before, const MemoryAccess& now, uint3 block, std::uint64_t block_number);
  bool of_this_thread(const Event& event, const MemoryAccess& now) const;
  bool matters_when_covered(const Event& written) const;

  // Launches and copies, where there are several streams, by the first slice of each.
  struct Operation {
    std::uint32_t first_slice, number;
    const void* stream;
    const void* kernel;
    std::function<std::string()> what;  // of a copy: what it is called, which takes a while to find
    bool allocates = false;             // or frees: it is no access
  };
  const Operation& operation_of(const Event& event) const;
  bool ordered_by_streams(const Event& event);
  void note_read(Page& page, std::uintptr_t address, const Event& now);
  void note_reader(Page& page, std::uintptr_t address, const Event& read);
  // what: its text, which takes a while to find, and which most races are not asked for
  void race_of_streams(const Event& before, const std::function<std::string()>& what, std::int32_t pc);
  Page* with_cells(std::uintptr_t address, std::size_t odd_bytes);

  StreamOrder streams_;
  std::vector<Operation> operations_;
  // The slices of the operations that were asked of last: of one that does not come before the current one, of one that
  // does.
  struct Asked {
    std::uint32_t from = 0, slices = 0;
    bool has(std::uint32_t slice) const { return slice - from < slices; }
  };
  std::array<Asked, 2> asked_;
  struct InStream {
    std::uintptr_t end;
    std::uint32_t slice;
  };
  std::map<std::uintptr_t, InStream> allocated_in_streams_;  // by their begin

  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  struct Recent {
    std::uintptr_t place = ~std::uintptr_t(0);
    Page* page = nullptr;
  };
  std::array<Recent, 1024> recent_;
  bool full_ = false;

  std::vector<Slice> slices_;
  std::uint32_t first_slice_ = 1;  // of this launch
  std::uint32_t slice_ = 1;        // the current one
  std::uint64_t block_ = 0;
  std::uint32_t epoch_ = 0;
  std::uint32_t interval_ = 0;
  std::uint32_t last_fence_interval_ = 0, earlier_fence_interval_ = 0;
  std::unordered_map<unsigned, Stores> stores_;               // [thread]
  std::unordered_map<unsigned, std::uint32_t> fences_;        // [thread]: the interval of its last one
  std::unordered_map<unsigned, std::uint32_t> fence_slices_;  // [warp]: the slice before its last one

  std::unordered_map<std::uintptr_t, Flag> flags_;
  std::unordered_map<std::uint64_t, std::vector<Acquired>> acquired_;  // [block]

  std::unordered_set<std::uint64_t> said_;  // pairs of instructions, or one
  std::unordered_set<std::string> said_lines_;

  // What is known of an instruction that stores, in this launch.
  struct Setter {
    bool one_value = true;  // it stores that alone
    bool looks = true;      // at the place before, where it finds another value
    bool together = false;  // several threads have stored to one place, which nothing orders
    bool one_place = true;
    std::uintptr_t place = 0;
    std::size_t size = 0;
    std::array<char, 16> value = {};
  };
  std::unordered_map<std::int32_t, Setter> setters_;
  std::array<std::int32_t, 64> several_values_ = {};  // most of those that store more than one value
  // The last store, of which it is not known yet whether it changes anything, and what it races with, if it does.
  struct Stored {
    MemoryAccess now = {};  // of no bytes: none
    uint3 block = {};
    std::uint64_t block_number = 0;
    Setter* setter = nullptr;            // if it is one that stores one value so far
    bool looked = false, again = false;  // another thread has stored there
    bool first = false;                  // nobody had written there
    std::array<char, 16> old = {};
  };
  Stored stored_;
  struct Before {
    std::uintptr_t address;
    Event event;
  };
  std::vector<Before> stored_over_;

  struct BesideASet {
    std::int32_t setter;
    bool compares;  // the read only compares what it finds
    std::string message;
  };
  std::vector<BesideASet> beside_sets_;  // reads that race with one
  UnchangedStores& unchanged_;
  std::uint32_t awaited_from_ = 0;  // of one stream: what comes from this slice on the host has not waited for

  std::unordered_set<std::uint64_t> same_;  // pairs of instructions that have stored the same
};

}  // namespace simt
