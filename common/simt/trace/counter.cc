// How accesses become requests and requests become counts.
#include "simt/trace/counter.h"

#include <algorithm>
#include <bit>
#include <set>

#include "simt/engine/engine.h"
#include "simt/hopper/bulk_copy.h"
#include "simt/hopper/mbarrier.h"
#include "simt/hopper/wgmma.h"
#include "simt/trace/walk_recorder.h"
#include "simt/trace/widths.h"

namespace simt {
namespace {

// Of a thread, before its warp meets: they are kept until then, and take 400 MB.
constexpr std::size_t most_events = 1 << 24;

// Requests of an instruction that wait to become as wide as nvcc's.
constexpr std::size_t most_narrow = 64;

// A set of up to 64 numbers that forgets them all at once.
class SmallSet {
 public:
  void clear() {
    ++generation_;
    size_ = 0;
  }
  bool insert(std::uintptr_t value) {
    for (std::size_t i = value * 0x9e3779b97f4a7c15 >> 57;; ++i) {
      Entry& entry = entries_[i % entries_.size()];
      if (entry.generation != generation_) {
        entry = {value, generation_};
        ++size_;
        return true;
      }
      if (entry.value == value) return false;
    }
  }
  std::size_t size() const { return size_; }

 private:
  struct Entry {
    std::uintptr_t value;
    std::uint64_t generation;
  };
  std::array<Entry, 128> entries_ = {};
  std::uint64_t generation_ = 1;
  std::size_t size_ = 0;
};

std::uint64_t key_of(const void* pc, Op op) {
  return reinterpret_cast<std::uintptr_t>(pc) | static_cast<std::uint64_t>(op) << 56;
}

// The most different words in one bank, over these lanes: as many wavefronts they take.
unsigned most_in_a_bank(const Request& request, unsigned lanes) {
  std::array<std::array<std::uintptr_t, 128>, 32> words;  // different ones, by bank
  std::array<unsigned char, 32> used = {};
  unsigned most = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const std::uintptr_t address = request.address[std::countr_zero(lanes)];
    for (std::uintptr_t word = address / 4; word <= (address + request.size - 1) / 4; ++word) {
      auto& bank = words[word % 32];
      unsigned char& n = used[word % 32];
      if (std::find(bank.begin(), bank.begin() + n, word) != bank.begin() + n) continue;
      bank[n++] = word;
      most = std::max<unsigned>(most, n);
    }
  }
  return most;
}

// Does every lane want the same as its neighbour, lane ^ 1, or every lane the same as lane ^ 2, where those take part?
bool lanes_share(const Request& request, unsigned lanes) {
  for (const unsigned distance : {1u, 2u}) {
    bool all = true;
    for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
      const unsigned lane = std::countr_zero(rest), other = lane ^ distance;
      all = all && (!(lanes >> other & 1) || request.address[lane] == request.address[other]);
    }
    if (all) return true;
  }
  return false;
}

// Shared memory serves a request in passes. Up to 4 bytes a lane: one. 8 bytes: half a warp each, but one for a load
// whose lanes share. 16 bytes: a quarter each, but half a warp for a load whose lanes share. ldmatrix: the eight
// rows of a matrix. (As found on an H200 with common/tests/trace/patterns.cu.)
template <class Pass>
void for_each_pass(const Request& request, Pass pass) {
  const auto some = [&](unsigned lanes) {
    if (lanes != 0) pass(lanes);
  };
  const bool shares = request.op == Op::shared_load && lanes_share(request, request.lanes);
  if (request.op == Op::ldmatrix || request.op == Op::copy_store || request.size > 8) {
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned lanes = request.lanes & 0xffffu << 16 * half;
      if (shares) {
        some(lanes);
      } else {
        some(lanes & 0x00ff00ff);
        some(lanes & 0xff00ff00);
      }
    }
  } else if (request.size > 4 && !shares) {
    some(request.lanes & 0xffff);
    some(request.lanes & 0xffff0000);
  } else {
    some(request.lanes);
  }
}

// One more request, of so many bytes.
Counts& noted(const Request& request, Counts& counts) {
  ++counts.requests;
  counts.bytes += std::uint64_t(request.size) * std::popcount(request.lanes);
  counts.lane_bytes += request.size;
  return counts;
}

void count_shared(const Request& request, Counts& counts) {
  for_each_pass(request, [&](unsigned lanes) {
    counts.units += most_in_a_bank(request, lanes);
    ++counts.ideal;
  });
}

// What cp.async brings arrives by cache lines: what a pass gets from each is stored on its own, and zeros as if they
// came from the lines of their addresses in global memory.
void count_copy_store(const Request& request, Counts& counts) {
  for_each_pass(request, [&](unsigned lanes) {
    ++counts.ideal;
    while (lanes != 0) {
      const std::uintptr_t line = request.from[std::countr_zero(lanes)] / 128;
      unsigned of_this_line = 0;
      for (unsigned rest = lanes; rest != 0; rest &= rest - 1)
        if (const unsigned lane = std::countr_zero(rest); request.from[lane] / 128 == line) of_this_line |= 1u << lane;
      counts.units += most_in_a_bank(request, of_this_line);
      lanes &= ~of_this_line;
    }
  });
}

std::uint64_t flops_of(const Product& product) { return std::uint64_t(2) * 16 * 16 * product.form.columns; }

}  // namespace

void Counter::launch_begins(const Launch& launch) {
  kernel_ = launch.kernel;
  instructions_.clear();
  instruction_by_key_.clear();
  joining_.clear();
  parked_.clear();
  first_block_ = last_block_ + 1;
  current_ = {};
  flops_alone_ = 0;
  copies_ = false;
  shared_bytes_ = 0;
  current_.grid = launch.grid;
  current_.block = launch.block;
  current_.cluster = launch.cluster;
  pausing_.resize(launch.cluster_blocks());
  current_.dynamic_shared_bytes = launch.shared_bytes;
}

void Counter::block_begins() {
  now_ = {};  // copies that nobody waits for have not landed
  now_.number = ++last_block_;
  for (auto& events : events_) events.clear();
}

void Counter::launch_ends() {
  current_.kernel = kernel_name(kernel_);
  if (copies_) current_.matrix_flops_alone = flops_alone_;
  std::vector<InstructionCounts>& counted = by_instruction.emplace_back();
  for (const Instruction& each : instructions_) {
    current_.totals[static_cast<int>(each.op)] += each.counts;
    counted.push_back({each.pc, each.op, each.counts});
  }
  launches.push_back(std::move(current_));
}

void Counter::accessed(const MemoryAccess& a) {
  if (a.space == MemoryAccess::elsewhere) return;
  constexpr Op global[] = {Op::global_load, Op::global_store, Op::global_atomic,
                           Op::global_load, Op::global_store, Op::global_atomic};
  constexpr Op shared[] = {Op::shared_load, Op::shared_store, Op::shared_atomic,
                           Op::shared_load, Op::shared_store, Op::shared_atomic};
  const auto access = static_cast<int>(a.access);
  const bool own = a.space == MemoryAccess::global || worker->cluster().size() == 1 ||
                   a.offset / worker->shared_bytes_of_each() == worker->rank();
  keep(a.thread, a.pc, a.address, a.size,
       a.space == MemoryAccess::global ? global[access]
       : own                           ? shared[access]
                                       : Op::distributed);
}

void Counter::ldmatrix_row(const MemoryAccess& row) { keep(row.thread, row.pc, row.address, 16, Op::ldmatrix); }

Counter::OfBlock& Counter::of(const Worker& block) { return &block == worker ? now_ : pausing_[block.rank()].now; }

void Counter::take_turns() {
  Pausing& pausing = pausing_[worker->rank()];
  events_.swap(pausing.events);
  std::swap(now_, pausing.now);
}

void Counter::copy_begins(const void* completed_by, OfBlock& block) {
  copies_ = true;
  ++block.copies;
  std::optional<unsigned> warp;
  if (&block == &now_) {
    warp = worker->current().number / 32;
    ++block.copies_of[*warp];
  }
  block.begun[completed_by].push_back({block.flops, warp});
}

void Counter::copy_ends(const void* completed_by, OfBlock& block) {
  --block.copies;
  auto& begun = block.begun[completed_by];
  if (begun.empty()) return;
  const auto [flops, warp] = begun.front();
  current_.for_exercises.copies_alone += flops == block.flops;
  if (warp) --block.copies_of[*warp];
  begun.pop_front();
}

// Between two barriers one warp runs after the other here. What one of them does beside copies of its own, from the one
// barrier to the other, the others can do beside them, too.
void Counter::add_flops_alone(OfBlock& block) {
  if ((block.beside_their_own & ~block.beside_none).none()) flops_alone_ += block.flops_alone;
  block.flops_alone = 0;
  block.beside_their_own.reset();
  block.beside_none.reset();
}

void Counter::copy_starts(const Copy& copy, const PendingCopies& owner) {
  copy_begins(&owner, now_);
  keep(copy.thread, copy.pc, reinterpret_cast<std::uintptr_t>(copy.shared), copy.bytes, Op::copy_store,
       reinterpret_cast<std::uintptr_t>(copy.global) | (copy.source_bytes > 0 ? 0 : zeros));
}

Work Counter::work() const {
  const Traffic &read = current_.read, &written = current_.written;
  return {read.warps + written.warps,   read.blocks + written.blocks,
          read.launch + written.launch, shared_bytes_,
          current_.matrix_flops,        current_.shuffles};
}

void Counter::tell_the_walk() {
  if (walk_ == nullptr) return;
  const unsigned thread = worker->current().number;
  walk_->works(thread / 32, walk_->step_of(thread), work());
}

void Counter::multiplied(std::uint64_t flops) {
  current_.matrix_flops += flops;
  now_.flops += flops;
  current_.for_exercises.flops_of_a_block = std::max(current_.for_exercises.flops_of_a_block, now_.flops);
  if (now_.copies == 0) now_.flops_alone += flops;
  const unsigned warp = worker->current().number / 32;
  (now_.copies_of[warp] > 0 ? now_.beside_their_own : now_.beside_none).set(warp);
}

void Counter::matrix_product(std::uint64_t flops) {
  multiplied(flops);
  now_.after_a_vote.reset(worker->current().number / 32);
  tell_the_walk();
}

void Counter::shuffled() {
  ++current_.shuffles;
  tell_the_walk();
}

void Counter::voted() {
  const unsigned warp = worker->current().number / 32;
  if (now_.products[warp] == 0) ++current_.for_exercises.votes_alone;
  now_.after_a_vote.set(warp);
}

void Counter::compared() {
  if (now_.after_a_vote[worker->current().number / 32]) ++current_.for_exercises.comparisons_after_votes;
}

void Counter::wrote(std::size_t bytes) {
  const unsigned warp = worker->current().number / 32;
  if (now_.after_a_vote[warp]) current_.for_exercises.bytes_after_votes += bytes;
  if (now_.products[warp] == 0) current_.for_exercises.bytes_alone += bytes;
  if (now_.keeps_operands[warp]) current_.for_exercises.bytes_before_release += bytes;
}

void Counter::arrived(const Awaited& at, bool waits) {
  const unsigned warp = worker->current().number / 32;
  if (dynamic_cast<const Mbarrier*>(&at) != nullptr) now_.keeps_operands.reset(warp);
  if (!waits && dynamic_cast<const NamedBarrier*>(&at) != nullptr) now_.in_turn.reset(warp);
}

void Counter::waited_at(const NamedBarrier&, const Wait&) { now_.in_turn.set(worker->current().number / 32); }

void Counter::keep(unsigned thread, const void* pc, std::uintptr_t address, std::size_t size, Op op,
                   std::uintptr_t from) {
  if (events_[thread].size() == most_events)
    worker->fail(cudaErrorLaunchTimeout, &worker->current(), line_of(pc),
                 "the thread has made " + std::to_string(most_events) +
                     " accesses without meeting the other lanes of its warp. If its loop waits for what another thread "
                     "writes, it never ends: threads run one after the other here, from one barrier to the next");
  events_[thread].push_back({pc, address | std::uint64_t(size) << 48 | static_cast<std::uint64_t>(op) << 56, from,
                             walk_ != nullptr ? walk_->step_of(thread) : 0});
  std::uint64_t& most = current_.for_exercises.accesses_of_a_thread;
  most = std::max<std::uint64_t>(most, ++now_.accesses[thread]);
}

void Counter::released(Orders orders, const Awaited*, const ThreadSet& threads, const Worker& block) {
  const unsigned block_threads = current_.block.x * current_.block.y * current_.block.z;
  if (orders == Orders::block) {
    for (unsigned warp = 0; warp * 32 < block_threads; ++warp) put_together(warp, ~0u);
    ++current_.barriers;
    add_flops_alone(of(block));
    return;
  }
  const Lanes lanes = block.lanes(threads);
  for (unsigned warp = 0; warp < max_warps; ++warp) {
    if (lanes[warp] == 0) continue;
    if (orders == Orders::nothing || orders == Orders::lanes) {
      // Some lanes alone do not end a request: what they did before they left the others, and will do when they have
      // met them again, is one with what those do, even if those have returned by now.
      const unsigned of_warp = block_threads - warp * 32;
      const bool all = lanes[warp] == (of_warp >= 32 ? ~0u : (1u << of_warp) - 1);
      if (all || orders == Orders::lanes) put_together(warp, lanes[warp]);
    }
    if (orders == Orders::arrivals) put_together(warp, ~0u);
  }
}

// Usually all lanes have done the same: their n-th events are the n-th request.
void Counter::put_together(unsigned warp, unsigned lanes) {
  const std::vector<Event>* first = nullptr;
  unsigned active = 0;
  bool same = true;
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const unsigned lane = std::countr_zero(rest);
    const auto& events = events_[warp * 32 + lane];
    if (events.empty()) continue;
    active |= 1u << lane;
    if (first == nullptr) first = &events;
    same = same && events.size() == first->size();
  }
  if (first == nullptr) return;
  Request request = {};
  for (std::size_t i = 0; same && i < first->size(); ++i)
    for (unsigned rest = active; rest != 0; rest &= rest - 1) {
      const Event& event = events_[warp * 32 + std::countr_zero(rest)][i];
      same = same && event.pc == (*first)[i].pc && event.what >> 48 == (*first)[i].what >> 48;
    }
  if (same) {
    for (std::size_t i = 0; i < first->size(); ++i) {
      const Event& event = (*first)[i];
      request = {event.pc,
                 static_cast<Op>(event.what >> 56),
                 static_cast<unsigned>(event.what >> 48 & 0xff),
                 active,
                 {},
                 {},
                 warp,
                 event.step};
      for (unsigned rest = active; rest != 0; rest &= rest - 1) {
        const unsigned lane = std::countr_zero(rest);
        request.address[lane] = events_[warp * 32 + lane][i].what & address_bits;
        request.from[lane] = events_[warp * 32 + lane][i].from;
      }
      count(request);
    }
  } else {
    put_together_by_occurrence(warp, active);
  }
  for (unsigned rest = active; rest != 0; rest &= rest - 1) events_[warp * 32 + std::countr_zero(rest)].clear();
  batch_ends();
}

// Where lanes went different ways: the n-th time that one executes an instruction goes with the n-th time of the
// others.
void Counter::put_together_by_occurrence(unsigned warp, unsigned lanes) {
  struct Executions {
    unsigned lane = 32;  // whose are counted in `times`
    std::size_t times = 0;
    std::vector<std::size_t> requests;
  };
  std::unordered_map<std::uint64_t, Executions> executions;
  std::vector<Request> requests;
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const unsigned lane = std::countr_zero(rest);
    for (const Event& event : events_[warp * 32 + lane]) {
      const auto op = static_cast<Op>(event.what >> 56);
      Executions& of_this = executions[key_of(event.pc, op)];
      if (of_this.lane != lane) of_this.lane = lane, of_this.times = 0;
      if (of_this.times == of_this.requests.size()) {
        of_this.requests.push_back(requests.size());
        requests.push_back({event.pc, op, static_cast<unsigned>(event.what >> 48 & 0xff), 0, {}, {}, warp, event.step});
      }
      Request& request = requests[of_this.requests[of_this.times++]];
      request.lanes |= 1u << lane;
      request.address[lane] = event.what & address_bits;
      request.from[lane] = event.from;
    }
  }
  for (const Request& request : requests) count(request);
}

Counter::Instruction& Counter::instruction_at(const void* pc, Op op) {
  const auto [place, is_new] = instruction_by_key_.try_emplace(key_of(pc, op), instructions_.size());
  if (is_new) {
    Instruction& instruction = instructions_.emplace_back();
    instruction.pc = pc;
    instruction.op = op;
    const double begin = processor_seconds();
    instruction.widest = widest(pc, op);
    worker->launch().pace.once(processor_seconds() - begin);
  }
  return instructions_[place->second];
}

// Do the lanes go on where the request before it ended, within the bytes that nvcc could take at once? (The first and
// the last lane stand for all.)
bool Counter::joins_the_last(Instruction& instruction, const Request& request) const {
  const std::uintptr_t first = request.address[std::countr_zero(request.lanes)],
                       last = request.address[31 - std::countl_zero(request.lanes)];
  const unsigned most = instruction.widest > request.size ? instruction.widest : 16,
                 bytes = instruction.size + request.size;
  const bool joins = instruction.batch == batch_ && first == instruction.first + instruction.size &&
                     last == instruction.last + instruction.size && instruction.lanes == request.lanes &&
                     bytes <= most && bytes <= (instruction.first & -instruction.first) &&
                     bytes <= (instruction.last & -instruction.last);
  if (joins) {
    instruction.size = bytes;
  } else {
    instruction.lanes = request.lanes;
    instruction.size = request.size;
    instruction.first = first;
    instruction.last = last;
  }
  return joins;
}

// The same of a request that has to become wider, and one that may be another iteration's.
bool Counter::continues(const Request& before, const Request& request, unsigned most) {
  const auto follows = [&](unsigned lane) {
    const std::uintptr_t address = before.address[lane];
    return request.address[lane] == address + before.size && before.size + request.size <= (address & -address);
  };
  return before.lanes == request.lanes && before.size + request.size <= most &&
         follows(std::countr_zero(request.lanes)) && follows(31 - std::countl_zero(request.lanes));
}

void Counter::batch_ends() {
  for (const std::size_t number : joining_) {
    for (const Request& request : std::exchange(instructions_[number].narrow, {}))
      count(request, instructions_[number]);
  }
  joining_.clear();
  ++batch_;
}

// A request as g++ has it. Where nvcc's are known to be wider, it is not counted before it is as wide as those. What it
// becomes a part of may lie some requests back: nvcc unrolls loops and changes their order.
void Counter::count(const Request& request) {
  if (request.op == Op::copy_store) return count_copy(request);
  Instruction& instruction = instruction_at(request.pc, request.op);
  if (instruction.widest <= request.size) {
    if (request.op == Op::shared_load || request.op == Op::shared_store) {
      instruction.counts.neighbours += joins_the_last(instruction, request);
      instruction.batch = batch_;
    }
    return count(request, instruction);
  }
  auto& narrow = instruction.narrow;
  const auto before = std::find_if(narrow.begin(), narrow.end(),
                                   [&](const Request& each) { return continues(each, request, instruction.widest); });
  if (before == narrow.end()) {
    if (narrow.empty()) joining_.push_back(static_cast<std::size_t>(&instruction - instructions_.data()));
    if (narrow.size() == most_narrow) {
      count(narrow.front(), instruction);
      narrow.erase(narrow.begin());
    }
    narrow.push_back(request);
    return;
  }
  before->size += request.size;
  if (before->size < instruction.widest) return;
  count(*before, instruction);
  narrow.erase(before);
}

void Counter::count(const Request& request, Instruction& instruction) {
  Counts& counts = noted(request, instruction.counts);
  if (is_global(request.op))
    count_global(request, counts);
  else
    count_shared(request, counts);
  counted(request);
}

void Counter::counted(const Request& request) {
  if (!is_global(request.op)) shared_bytes_ += std::uint64_t(request.size) * std::popcount(request.lanes);
  if (walk_ != nullptr) walk_->works(request.warp, request.step, work());
}

// Two in one: a request to global memory by the lanes that have something to fetch, and one to shared memory.
void Counter::count_copy(const Request& request) {
  Request load = request;
  load.op = Op::copy_load;
  load.address = request.from;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (request.from[lane] & zeros) load.lanes &= ~(1u << lane);
  if (load.lanes != 0) count_global(load, noted(load, instruction_at(load.pc, load.op).counts));
  count_copy_store(request, noted(request, instruction_at(request.pc, request.op).counts));
  counted(request);
}

void Counter::count_global(const Request& request, Counts& counts) {
  static SmallSet sectors, addresses, lines;
  lines.clear();
  sectors.clear();
  addresses.clear();
  for (unsigned rest = request.lanes; rest != 0; rest &= rest - 1) {
    const std::uintptr_t address = request.address[std::countr_zero(rest)];
    if (!addresses.insert(address)) continue;
    for (std::uintptr_t sector = address / 32; sector <= (address + request.size - 1) / 32; ++sector)
      if (sectors.insert(sector)) {
        touch(sector, request.op);
        lines.insert(sector / 4);
      }
  }
  counts.units += sectors.size();
  if (request.op == Op::global_atomic && addresses.size() > 1) counts.units += count_repeated_words(request);
  counts.lines += lines.size();
  counts.ideal += (addresses.size() * request.size + 31) / 32;
}

// Lanes that want the same word of global memory take turns: so many sectors come again for the second of them, the
// third, .. Where all lanes want one word, nvcc lets one of them do it for all.
std::size_t Counter::count_repeated_words(const Request& request) {
  static std::array<SmallSet, 32> turns;  // the sectors of each
  std::array<unsigned, 32> times = {};
  std::size_t count = 0;
  for (SmallSet& turn : turns) turn.clear();
  for (unsigned rest = request.lanes; rest != 0; rest &= rest - 1) {
    const unsigned lane = std::countr_zero(rest);
    const std::uintptr_t address = request.address[lane];
    for (unsigned other = request.lanes & ((1u << lane) - 1); other != 0; other &= other - 1)
      times[lane] += request.address[std::countr_zero(other)] == address;
    if (times[lane] == 0 || !turns[times[lane]].insert(address / 32)) continue;
    touch(address / 32, request.op);
    ++count;
  }
  return count;
}

void Counter::touch(std::uintptr_t sector, Op op) {
  const std::uintptr_t number = sector / Page::sectors;
  auto& [recent, page] = recent_pages_[number % recent_pages_.size()];
  if (page == nullptr || recent != number) {
    auto& owned = pages_[number];
    if (!owned) owned = std::make_unique<Page>();
    recent = number;
    page = owned.get();
  }
  const auto note = [&](std::array<std::uint32_t, Page::sectors>& last, Traffic& traffic) {
    std::uint32_t& block = last[sector % Page::sectors];
    traffic.warps += 32;
    if (block != now_.number) traffic.blocks += 32;
    if (block < first_block_) traffic.launch += 32;
    block = now_.number;
  };
  const bool stores = op == Op::global_store || op == Op::bulk_store;
  if (!stores) note(page->read, current_.read);
  if (stores || op == Op::global_atomic || op == Op::bulk_add) note(page->written, current_.written);
}

void Counter::count(const BulkCopy& copy) {
  const Op op = copy.kind == BulkCopy::load    ? Op::bulk_load
                : copy.kind == BulkCopy::store ? Op::bulk_store
                                               : Op::bulk_add;
  std::set<std::uintptr_t> sectors, lines;
  std::uint64_t inside = 0;
  copy.for_each_piece([&](char*, const char* global, int bytes) {
    if (global == nullptr) return;
    inside += static_cast<std::uint64_t>(bytes);
    const auto first = reinterpret_cast<std::uintptr_t>(global), last = first + static_cast<std::uintptr_t>(bytes) - 1;
    for (std::uintptr_t sector = first / 32; sector <= last / 32; ++sector) sectors.insert(sector);
    for (std::uintptr_t line = first / 128; line <= last / 128; ++line) lines.insert(line);
  });
  for (const std::uintptr_t sector : sectors) touch(sector, op);
  instruction_at(copy.pc, op).counts += {.requests = 1,
                                         .bytes = static_cast<std::uint64_t>(copy.bytes),
                                         .units = sectors.size(),
                                         .ideal = (inside + 31) / 32,
                                         .lines = lines.size()};
  tell_the_walk();
}

void Counter::product_starts(const Product& product) {
  const auto columns = static_cast<std::uint64_t>(product.form.columns);
  const std::uint64_t bytes = (product.form.a_in_registers ? 0 : 16 * 32) + columns * 32 / 4;
  const std::uint64_t flops = flops_of(product);
  multiplied(flops);
  ++now_.products[product.warp];
  if (!now_.in_turn[product.warp]) current_.for_exercises.flops_out_of_turn += flops;
  shared_bytes_ += bytes;
  instruction_at(product.pc, Op::wgmma).counts +=
      {.requests = 1, .bytes = bytes, .units = bytes / 128, .ideal = bytes / 128};
  tell_the_walk();
}

void Counter::product_ends(const Product& product) {
  if (--now_.products[product.warp] == 0) ++current_.for_exercises.waits_for_all_products;
  now_.keeps_operands.set(product.warp);
  if (now_.in_turn[product.warp]) current_.for_exercises.flops_ended_in_turn += flops_of(product);
}

}  // namespace simt
