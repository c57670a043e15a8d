// The observer that counts: puts the accesses of a warp's lanes together to requests, and requests to counts
// (counts.h).
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simt/engine/observer.h"
#include "simt/hopper/bulk_copy.h"
#include "simt/trace/counts.h"
#include "simt/trace/walk.h"

namespace simt {

class WalkRecorder;

// One request: what the lanes of a warp do together.
struct Request {
  const void* pc;
  Op op;
  unsigned size;  // bytes of each lane's access
  unsigned lanes;
  std::array<std::uintptr_t, 32> address;
  // Of cp.async: the address in global memory, plus `zeros` if none of it is fetched.
  std::array<std::uintptr_t, 32> from;
  unsigned warp;
  std::size_t step;  // of the walk
};

constexpr std::uintptr_t zeros = 1;  // a bit that no address has from which cp.async copies: they are multiples of 4

// What one instruction did in a launch.
struct InstructionCounts {
  const void* pc;  // the return address of the compiler's call for the access
  Op op;
  Counts counts;
};

class Counter final : public Observer {
 public:
  // Tells a walk of the work of each step as it is counted; null: nobody.
  void tell(WalkRecorder* walk) { walk_ = walk; }

  // The launches that have succeeded; the counts of each by instruction, not yet by line.
  std::vector<LaunchCounts> launches;
  std::vector<std::vector<InstructionCounts>> by_instruction;

  void launch_begins(const Launch& launch) override;
  void launch_ends() override;
  void block_begins() override;
  void block_ends() override { add_flops_alone(now_); }
  void block_parked(const ParkedBlock& block) override { parked_[&block] = std::move(now_); }
  void block_unparked(const ParkedBlock& block) override { now_ = std::move(parked_[&block]); }
  void block_pauses() override { take_turns(); }
  void block_goes_on() override { take_turns(); }
  void warp_ends(unsigned warp) override { put_together(warp, ~0u); }

  void accessed(const MemoryAccess& access) override;
  void ldmatrix_row(const MemoryAccess& row) override;
  void matrix_product(std::uint64_t flops) override;
  void shuffled() override;
  void voted() override;
  void compared() override;
  void wrote(std::size_t bytes) override;
  void released(Orders orders, const Awaited* what, const ThreadSet& threads, const Worker& block) override;
  void arrived(const Awaited& at, bool waits) override;
  void waited_at(const NamedBarrier& barrier, const Wait& wait) override;
  void copy_starts(const Copy& copy, const PendingCopies& owner) override;
  void copy_lands(const Copy&, const PendingCopies& owner) override { copy_ends(&owner, now_); }
  void bulk_load_starts(const BulkCopy& copy, const Mbarrier& mbarrier) override {
    copy_begins(&mbarrier, of(*copy.block));
    if (!copy.repeated && copy.kind != BulkCopy::remote) count(copy);
  }
  void bulk_load_lands(const BulkCopy& copy, const Mbarrier& mbarrier) override {
    copy_ends(&mbarrier, of(*copy.block));
  }
  void bulk_store_starts(const BulkCopy& copy) override { count(copy); }
  void bulk_store_ends(const BulkCopy& copy) override { current_.for_exercises.stores_waited_out += !copy.only_read; }
  void product_starts(const Product& product) override;
  void product_ends(const Product& product) override;

 private:
  // A lane's access, kept until it is put together with those of the other lanes.
  struct Event {
    const void* pc;
    std::uint64_t what;   // address, size << 48, op << 56
    std::uintptr_t from;  // as in Request
    std::size_t step;
  };
  static constexpr std::uint64_t address_bits = (std::uint64_t(1) << 48) - 1;

  // 128 KiB of global memory: the block that last touched each sector, as a number that never repeats.
  struct Page {
    static constexpr std::size_t sectors = 4096;
    std::array<std::uint32_t, sectors> read = {}, written = {};
  };

  // What is known of an instruction.
  struct Instruction {
    const void* pc;
    Op op;
    unsigned widest;  // bytes of nvcc's instruction, 0 if that is not known
    Counts counts;
    // The request before this one, if it was of the same batch: joined to those before it, as nvcc might.
    std::uint64_t batch = 0;
    unsigned lanes = 0, size = 0;
    std::uintptr_t first = 0, last = 0;  // addresses of its first and its last lane
    std::vector<Request> narrow;         // not counted yet, where nvcc's are wider
  };

  struct OfBlock {
    std::uint32_t number = 0;
    std::uint64_t copies = 0;  // to shared memory, that are on their way
    std::uint64_t flops = 0;
    // How many there were when each of these copies began, and the warp that started it, if it is one of this block's;
    // by what completes it, which does so in their order.
    struct Begun {
      std::uint64_t flops;
      std::optional<unsigned> warp;
    };
    std::unordered_map<const void*, std::deque<Begun>> begun;
    // Since the last barrier: flops that no copy was on its way beside, and the warps that had one of their own on its
    // way when they multiplied, and that had none.
    std::uint64_t flops_alone = 0;
    std::bitset<max_warps> beside_their_own, beside_none;
    std::array<unsigned, max_warps> copies_of = {};  // by warp
    std::bitset<max_warps> in_turn;
    std::array<unsigned, max_warps> products = {};  // of wgmma that are on their way
    std::bitset<max_warps> after_a_vote;
    std::bitset<max_warps> keeps_operands;  // of a product by wgmma that has ended: has arrived nowhere since then
    std::array<std::uint32_t, max_block_threads> accesses = {};
  };

  void keep(unsigned thread, const void* pc, std::uintptr_t address, std::size_t size, Op op, std::uintptr_t from = 0);
  void put_together(unsigned warp, unsigned lanes);
  void put_together_by_occurrence(unsigned warp, unsigned lanes);
  void count(const Request& request);
  void count(const Request& request, Instruction& instruction);
  void count(const BulkCopy& copy);
  void count_copy(const Request& request);
  void count_global(const Request& request, Counts& counts);
  std::size_t count_repeated_words(const Request& request);
  void counted(const Request& request);
  void touch(std::uintptr_t sector, Op op);
  void copy_begins(const void* completed_by, OfBlock& block);
  void copy_ends(const void* completed_by, OfBlock& block);
  void add_flops_alone(OfBlock& block);
  OfBlock& of(const Worker& block);
  void take_turns();
  void multiplied(std::uint64_t flops);
  Instruction& instruction_at(const void* pc, Op op);
  bool joins_the_last(Instruction& instruction, const Request& request) const;
  static bool continues(const Request& before, const Request& request, unsigned most);
  void batch_ends();

  Work work() const;     // of the launch until now
  void tell_the_walk();  // that the current thread has done what has just been counted

  WalkRecorder* walk_ = nullptr;
  const void* kernel_ = nullptr;
  std::vector<std::vector<Event>> events_ =
      std::vector<std::vector<Event>>(max_block_threads);  // by the thread's number in its block
  LaunchCounts current_;
  std::uint64_t flops_alone_ = 0;   // of the launch
  bool copies_ = false;             // has it any to shared memory
  std::uint64_t shared_bytes_ = 0;  // of the launch
  std::vector<Instruction> instructions_;
  std::unordered_map<std::uint64_t, std::size_t> instruction_by_key_;  // PC and op
  std::uint64_t batch_ = 1;                                            // requests that are put together at once
  std::vector<std::size_t> joining_;                                   // instructions with narrow requests
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::array<std::pair<std::uintptr_t, Page*>, 16> recent_pages_ = {};
  OfBlock now_;     // of this block
  struct Pausing {  // another one of its cluster
    std::vector<std::vector<Event>> events = std::vector<std::vector<Event>>(max_block_threads);
    OfBlock now;
  };
  std::vector<Pausing> pausing_;   // by rank
  std::uint32_t last_block_ = 0;   // number of the last that began
  std::uint32_t first_block_ = 1;  // and of the launch's first
  std::unordered_map<const ParkedBlock*, OfBlock> parked_;
};

}  // namespace simt
