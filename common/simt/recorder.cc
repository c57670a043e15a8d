// How accesses become requests and requests become counts.
#include "simt/recorder.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "simt/collect.h"
#include "simt/engine.h"
#include "simt/memory.h"
#include "simt/widths.h"

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

}  // namespace

void Recorder::launch_begins(const Launch& launch, const SharedMemory& shared) {
  kernel_ = launch.kernel;
  ranges_.clear();
  std::size_t offset = 0;
  for (const auto& [pointer, bytes] : shared.ranges()) {
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    offset += (begin - offset) % 16;  // what is aligned in memory is aligned in the shadow
    ranges_.push_back({begin, bytes, offset});
    offset += bytes;
  }
  shadow_.launch_begins(offset);
  variables_ = DeviceVariable::all();
  async_.launch_begins(offset);
  written_before_.swap(written_);
  written_.clear();
  paused_ = false;
  dependent_ = launch.dependent;
  counting_ = collecting();
  walk_ = walk_recorder();
  if (walk_ != nullptr) walk_->launch_begins(launch);
  sites_.clear();
  sites_by_key_.clear();
  joining_.clear();
  first_block_ = last_block_ + 1;
  current_ = {};
  shared_bytes_ = 0;
  current_.grid = launch.grid;
  current_.block = launch.block;
  current_.dynamic_shared_bytes = launch.shared_bytes;
}

void Recorder::block_begins() {
  block_ = ++last_block_;
  paused_ = false;
  for (auto& events : events_) events.clear();
  after_kernel_before_.fill(dependent_ ? 0 : ~0u);
  shadow_.block_begins();
  async_.block_begins();
  if (walk_ != nullptr) walk_->block_begins(blockIdx);
}

void Recorder::block_ends() {
  if (walk_ != nullptr) walk_->all_meet("");
}

void Recorder::launch_ends() {
  if (walk_ != nullptr) walk_->launch_ends(kernel_name(kernel_));
  if (!counting_) return;
  current_.kernel = kernel_name(kernel_);
  std::vector<Counted> counted;
  for (const Site& site : sites_) {
    current_.totals[static_cast<int>(site.op)] += site.counts;
    counted.push_back({site.pc, site.op, site.counts});
  }
  collect(std::move(current_), counted);
}

std::size_t Recorder::shared_offset(std::uintptr_t address) const {
  for (const Range& range : ranges_)
    if (address - range.begin < range.bytes) return range.offset + (address - range.begin);
  return no_offset;
}

void Recorder::access(const void* pc, const void* pointer, std::size_t size, Access access) {
  if (paused_) return;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const unsigned thread = worker->current().number;
  if (DeviceMemory::instance().contains(pointer) || in_variable(pointer)) {
    constexpr Op ops[] = {Op::global_load, Op::global_store, Op::global_atomic, Op::global_load, Op::global_store};
    check_dependency(pc, address, size, writes(access));
    if (walk_ != nullptr) walk_->moves(thread, writes(access) ? Move::written : Move::read, address, size);
    keep(thread, pc, address, size, ops[static_cast<int>(access)]);
    return;
  }
  const std::size_t offset = shared_offset(address);
  if (offset == no_offset) return own_variable(pc, pointer, access);
  constexpr Op ops[] = {Op::shared_load, Op::shared_store, Op::shared_atomic, Op::shared_load, Op::shared_store};
  keep(thread, pc, address, size, ops[static_cast<int>(access)]);
  if (walk_ != nullptr && reads(access)) walk_->reads(thread, offset, size);
  if (walk_ != nullptr && writes(access)) walk_->writes(thread, offset, size);
  if (async_.used())
    if (const auto mistake = async_.access(offset, size, thread, writes(access), shadow_))
      report(*mistake, (writes(access) ? "write of " : "read of ") + std::to_string(size) + " bytes", pc);
  if (const auto mistake = shadow_.access(offset, size, thread, access, pc)) report(*mistake, access, size, pc);
}

// Constants have a cache of their own, whose requests Nsight Compute does not count with those of global memory.
bool Recorder::in_variable(const void* pointer) const {
  if (static_cast<std::size_t>(static_cast<const char*>(pointer) - variables_.begin) >= variables_.bytes) return false;
  const DeviceVariable* variable = DeviceVariable::at(pointer);
  return variable != nullptr && variable->kind() != DeviceVariable::constant;
}

void Recorder::misaligned(const void* pc, const void* pointer, std::size_t size, Access access) const {
  if (paused_) return;
  if (!DeviceMemory::instance().contains(pointer) && !in_variable(pointer) &&
      shared_offset(reinterpret_cast<std::uintptr_t>(pointer)) == no_offset)
    return;
  const std::string bytes = std::to_string(size);
  worker->fail(cudaErrorMisalignedAddress, &worker->current(), line_of(pc),
               "misaligned " + std::string(reads(access) ? "read" : "write") + ": the address of a " + bytes +
                   "-byte access is not a multiple of " + bytes);
}

void Recorder::ldmatrix_row(const void* pc, const void* row) {
  const unsigned thread = worker->current().number;
  const auto address = reinterpret_cast<std::uintptr_t>(row);
  keep(thread, pc, address, 16, Op::ldmatrix);
  const std::size_t offset = shared_offset(address);
  if (offset == no_offset) return;
  if (walk_ != nullptr) walk_->reads(thread, offset, 16);
  if (async_.used())
    if (const auto mistake = async_.access(offset, 16, thread, false, shadow_))
      report(*mistake, "read of 16 bytes", pc);
  if (const auto mistake = shadow_.access(offset, 16, thread, Access::read, pc)) report(*mistake, Access::read, 16, pc);
}

void Recorder::copy_starts(const Copy& copy, const PendingCopies& owner) {
  keep(copy.thread, copy.pc, reinterpret_cast<std::uintptr_t>(copy.shared), copy.bytes, Op::copy_store,
       reinterpret_cast<std::uintptr_t>(copy.global) | (copy.source_bytes > 0 ? 0 : zeros));
  check_dependency(copy.pc, reinterpret_cast<std::uintptr_t>(copy.global), copy.source_bytes, false);
  if (walk_ != nullptr && copy.source_bytes > 0)
    walk_->moves(copy.thread, Move::started, reinterpret_cast<std::uintptr_t>(copy.global), copy.source_bytes);
  const std::size_t offset = shared_offset(reinterpret_cast<std::uintptr_t>(copy.shared));
  if (offset == no_offset) return;
  if (const auto mistake = shadow_.copy_starts(offset, copy.bytes, copy.thread, copy.pc, &owner))
    report(*mistake, Access::write, copy.bytes, copy.pc);
}

void Recorder::copy_lands(const Copy& copy, const PendingCopies& owner) {
  if (walk_ != nullptr && copy.source_bytes > 0)
    walk_->moves(worker->current().number, Move::landed, reinterpret_cast<std::uintptr_t>(copy.global),
                 copy.source_bytes);
  const std::size_t offset = shared_offset(reinterpret_cast<std::uintptr_t>(copy.shared));
  if (offset == no_offset) return;
  if (const auto mistake = shadow_.copy_lands(offset, copy.bytes, worker->current().number, copy.pc, &owner))
    report(*mistake, Access::write, copy.bytes, copy.pc);
}

Work Recorder::work() const {
  const Traffic &read = current_.read, &written = current_.written;
  return {read.warps + written.warps,   read.blocks + written.blocks,
          read.launch + written.launch, shared_bytes_,
          current_.matrix_flops,        current_.shuffles};
}

void Recorder::works() {
  if (walk_ == nullptr) return;
  const unsigned thread = worker->current().number;
  walk_->works(thread / 32, walk_->step_of(thread), work());
}

void Recorder::matrix_product(std::uint64_t flops) {
  current_.matrix_flops += flops;
  works();
}

void Recorder::shuffle() {
  ++current_.shuffles;
  works();
}

// What the kernel before wrote may not be there yet on a GPU, or be overwritten by it.
void Recorder::check_dependency(const void* pc, std::uintptr_t address, std::size_t size, bool writes) {
  const unsigned thread = worker->current().number;
  const bool after = after_kernel_before_[thread / 32] >> (thread % 32) & 1;
  for (std::uintptr_t place = address / 16; place < (address + size + 15) / 16; ++place) {
    if (!after && written_before_.contains(place))
      worker->fail(cudaErrorLaunchFailure, &worker->current(), line_of(pc),
                   std::string(writes ? "write" : "read") + " of " + std::to_string(size) +
                       " bytes of global memory that the kernel before wrote, without having waited for it");
    if (writes) written_.insert(place);
  }
}

void Recorder::report(const Shadow::Mistake& mistake, Access access, std::size_t size, const void* pc) {
  const auto word = [](Access a) { return is_atomic(a) ? "atomic" : a == Access::read ? "read" : "write"; };
  const std::string what = std::string(word(access)) + " of " + std::to_string(size) + " bytes";
  const std::string other = "thread " + text(index_of(mistake.other.thread, blockDim)) + " at " +
                            (mistake.other.pc != nullptr ? line_of(mistake.other.pc) : std::string());
  std::string message;
  switch (mistake.kind) {
    case Shadow::Mistake::race:
      message = "race on shared memory: no barrier between this " + what + " and the " + word(mistake.other.access) +
                " of the same memory by " + other;
      break;
    case Shadow::Mistake::pending_copy:
      message = what + " of shared memory that a cp.async of " + other + " fills, before that thread waited for it";
      break;
    case Shadow::Mistake::uninitialised:
      message = what + " of uninitialised shared memory";
      break;
  }
  worker->fail(cudaErrorLaunchFailure, &worker->current(), line_of(pc), message);
}

void Recorder::watch(const char* name, std::int64_t row, std::int64_t column, float value, bool is_share) {
  if (walk_ == nullptr) return;
  if (is_share)
    walk_->watch_share(worker->current().number, name, row, column, value);
  else
    walk_->watch(worker->current().number, name, row, column, value);
}

void Recorder::keep(unsigned thread, const void* pc, std::uintptr_t address, std::size_t size, Op op,
                    std::uintptr_t from) {
  if (!counting_) return;
  if (events_[thread].size() == most_events)
    worker->fail(cudaErrorLaunchTimeout, &worker->current(), line_of(pc),
                 "the thread has made " + std::to_string(most_events) +
                     " accesses without meeting the other lanes of its warp. If its loop waits for what another thread "
                     "writes, it never ends: threads run one after the other here, from one barrier to the next");
  events_[thread].push_back({pc, address | std::uint64_t(size) << 48 | static_cast<std::uint64_t>(op) << 56, from,
                             walk_ != nullptr ? walk_->step_of(thread) : 0});
}

void Recorder::let_go(Orders orders, const void* what, const ThreadSet& threads) {
  const unsigned block_threads = current_.block.x * current_.block.y * current_.block.z;
  if (orders == Orders::block) {
    for (unsigned warp = 0; warp * 32 < block_threads; ++warp) put_together(warp, ~0u);
    ++current_.barriers;
    shadow_.barrier();
    if (walk_ != nullptr) walk_->all_meet(text(static_cast<const BlockBarrier*>(what)->site));
    return;
  }
  const Lanes lanes = worker->lanes(threads);
  for (unsigned warp = 0; warp < max_warps; ++warp) {
    if (lanes[warp] == 0) continue;
    if (walk_ != nullptr && (orders == Orders::nothing || orders == Orders::lanes)) walk_->meet(warp, lanes[warp]);
    if (orders == Orders::nothing || orders == Orders::lanes) {
      // Some lanes alone do not end a request: what they did before they left the others, and will do when they have
      // met them again, is one with what those do, even if those have returned by now.
      const unsigned of_warp = block_threads - warp * 32;
      const bool all = lanes[warp] == (of_warp >= 32 ? ~0u : (1u << of_warp) - 1);
      if (all || orders == Orders::lanes) put_together(warp, lanes[warp]);
    }
    if (orders == Orders::lanes) shadow_.syncwarp(warp, lanes[warp]);
    if (orders == Orders::arrivals) put_together(warp, ~0u);
    if (orders == Orders::kernel_before) after_kernel_before_[warp] |= lanes[warp];
  }
  if (orders == Orders::arrivals) shadow_.release(what, lanes);
  if (orders == Orders::arrivals && walk_ != nullptr) walk_->completes(gate_of(*static_cast<const Awaited*>(what)));
  if (orders == Orders::phase) shadow_.learn(what, lanes);
}

void Recorder::arrive(const Awaited& what, bool waits) {
  const unsigned thread = worker->current().number;
  shadow_.arrive(&what, thread);
  if (walk_ != nullptr) walk_->arrives(thread, gate_of(what), waits);
}

void Recorder::waited(const NamedBarrier& barrier, const Wait& wait) {
  const unsigned thread = worker->current().number;
  if (walk_ != nullptr) walk_->waited(thread, gate_of(barrier), walk_->arrived_at(thread), wait.site);
}

// Usually all lanes have done the same: their n-th events are the n-th request.
void Recorder::put_together(unsigned warp, unsigned lanes) {
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
void Recorder::put_together_by_occurrence(unsigned warp, unsigned lanes) {
  struct Instruction {
    unsigned lane = 32;  // whose executions `times` counts
    std::size_t times = 0;
    std::vector<std::size_t> requests;
  };
  std::unordered_map<std::uint64_t, Instruction> instructions;
  std::vector<Request> requests;
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const unsigned lane = std::countr_zero(rest);
    for (const Event& event : events_[warp * 32 + lane]) {
      const auto op = static_cast<Op>(event.what >> 56);
      Instruction& instruction = instructions[key_of(event.pc, op)];
      if (instruction.lane != lane) instruction.lane = lane, instruction.times = 0;
      if (instruction.times == instruction.requests.size()) {
        instruction.requests.push_back(requests.size());
        requests.push_back({event.pc, op, static_cast<unsigned>(event.what >> 48 & 0xff), 0, {}, {}, warp, event.step});
      }
      Request& request = requests[instruction.requests[instruction.times++]];
      request.lanes |= 1u << lane;
      request.address[lane] = event.what & address_bits;
      request.from[lane] = event.from;
    }
  }
  for (const Request& request : requests) count(request);
}

Recorder::Site& Recorder::site_of(const void* pc, Op op) {
  const auto [place, is_new] = sites_by_key_.try_emplace(key_of(pc, op), sites_.size());
  if (is_new) {
    Site& site = sites_.emplace_back();
    site.pc = pc;
    site.op = op;
    const auto begin = std::chrono::steady_clock::now();
    site.widest = widest(pc, op);
    worker->launch().pace.once(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return sites_[place->second];
}

// Do the lanes go on where the request before it ended, within the bytes that nvcc could take at once? (The first and
// the last lane stand for all.)
bool Recorder::goes_on(Site& site, const Request& request) const {
  const std::uintptr_t first = request.address[std::countr_zero(request.lanes)],
                       last = request.address[31 - std::countl_zero(request.lanes)];
  const unsigned most = site.widest > request.size ? site.widest : 16, bytes = site.size + request.size;
  const bool joins = site.batch == batch_ && first == site.first + site.size && last == site.last + site.size &&
                     site.lanes == request.lanes && bytes <= most && bytes <= (site.first & -site.first) &&
                     bytes <= (site.last & -site.last);
  if (joins) {
    site.size = bytes;
  } else {
    site.lanes = request.lanes;
    site.size = request.size;
    site.first = first;
    site.last = last;
  }
  return joins;
}

// The same of a request that has to become wider, and one that may be another iteration's.
bool Recorder::continues(const Request& before, const Request& request, unsigned most) {
  const auto follows = [&](unsigned lane) {
    const std::uintptr_t address = before.address[lane];
    return request.address[lane] == address + before.size && before.size + request.size <= (address & -address);
  };
  return before.lanes == request.lanes && before.size + request.size <= most &&
         follows(std::countr_zero(request.lanes)) && follows(31 - std::countl_zero(request.lanes));
}

void Recorder::batch_ends() {
  for (const std::size_t number : joining_) {
    for (const Request& request : std::exchange(sites_[number].narrow, {})) count(request, sites_[number]);
  }
  joining_.clear();
  ++batch_;
}

// A request as g++ has it. Where nvcc's are known to be wider, it is not counted before it is as wide as those. What it
// becomes a part of may lie some requests back: nvcc unrolls loops and changes their order.
void Recorder::count(const Request& request) {
  if (request.op == Op::copy_store) return count_copy(request);
  Site& site = site_of(request.pc, request.op);
  if (site.widest <= request.size) {
    if (request.op == Op::shared_load || request.op == Op::shared_store) {
      site.counts.neighbours += goes_on(site, request);
      site.batch = batch_;
    }
    return count(request, site);
  }
  auto& narrow = site.narrow;
  const auto before = std::find_if(narrow.begin(), narrow.end(),
                                   [&](const Request& each) { return continues(each, request, site.widest); });
  if (before == narrow.end()) {
    if (narrow.empty()) joining_.push_back(static_cast<std::size_t>(&site - sites_.data()));
    if (narrow.size() == most_narrow) {
      count(narrow.front(), site);
      narrow.erase(narrow.begin());
    }
    narrow.push_back(request);
    return;
  }
  before->size += request.size;
  if (before->size < site.widest) return;
  count(*before, site);
  narrow.erase(before);
}

void Recorder::count(const Request& request, Site& site) {
  Counts& counts = noted(request, site.counts);
  if (is_global(request.op))
    count_global(request, counts);
  else
    count_shared(request, counts);
  counted(request);
}

void Recorder::counted(const Request& request) {
  if (!is_global(request.op)) shared_bytes_ += std::uint64_t(request.size) * std::popcount(request.lanes);
  if (walk_ != nullptr) walk_->works(request.warp, request.step, work());
}

// Two in one: a request to global memory by the lanes that have something to fetch, and one to shared memory.
void Recorder::count_copy(const Request& request) {
  Request load = request;
  load.op = Op::copy_load;
  load.address = request.from;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (request.from[lane] & zeros) load.lanes &= ~(1u << lane);
  if (load.lanes != 0) count_global(load, noted(load, site_of(load.pc, load.op).counts));
  count_copy_store(request, noted(request, site_of(request.pc, request.op).counts));
  counted(request);
}

void Recorder::count_global(const Request& request, Counts& counts) {
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
  if (request.op == Op::global_atomic && addresses.size() > 1) counts.units += again(request);
  counts.lines += lines.size();
  counts.ideal += (addresses.size() * request.size + 31) / 32;
}

// Lanes that want the same word of global memory take turns: so many sectors come again for the second of them, the
// third, .. Where all lanes want one word, nvcc lets one of them do it for all.
std::size_t Recorder::again(const Request& request) {
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

void Recorder::touch(std::uintptr_t sector, Op op) {
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
    if (block != block_) traffic.blocks += 32;
    if (block < first_block_) traffic.launch += 32;
    block = block_;
  };
  const bool stores = op == Op::global_store || op == Op::bulk_store;
  if (!stores) note(page->read, current_.read);
  if (stores || op == Op::global_atomic || op == Op::bulk_add) note(page->written, current_.written);
}

}  // namespace simt
