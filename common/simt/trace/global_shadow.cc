#include "simt/trace/global_shadow.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "simt/engine/device_memory.h"
#include "simt/engine/engine.h"
#include "simt/engine/findings.h"

namespace simt {
namespace {

// Kernels are in the same program or library as this, so that 32 bits are enough from here.
const char anchor = 0;
std::int32_t near(const void* pc) { return static_cast<std::int32_t>(static_cast<const char*>(pc) - &anchor); }
const void* far(std::int32_t pc) { return &anchor + pc; }

std::uint64_t pair_of(std::int32_t a, std::int32_t b) {
  const auto one = static_cast<std::uint32_t>(a), other = static_cast<std::uint32_t>(b);
  return std::uint64_t(std::min(one, other)) << 32 | std::max(one, other);
}

const char* word(Access access) {
  return is_atomic(access) ? "atomic access" : access == Access::read ? "read" : "write";
}

std::string bytes_text(std::size_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

std::string block_text(std::uint64_t block, dim3 grid) {
  return "block " + text(uint3{static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
                               static_cast<unsigned>(block / grid.x / grid.y)});
}

// "kernel k, block (0, 0, 0), thread (1, 0, 0), at mine.cu:5: "
std::string here(const void* pc) {
  return "kernel " + kernel_name(worker->launch().kernel) + ", block " + text(blockIdx) + ", thread " +
         text(worker->current().index) + ", at " + line_of(pc) + ": ";
}

// Of what kind the memory is in which races are looked for.
const char* kind_of(std::uintptr_t address) {
  const auto* const memory = reinterpret_cast<const void*>(address);
  if (DeviceMemory::instance().contains(memory)) return "global memory";
  const DeviceVariable* const variable = DeviceVariable::at(memory);
  return variable == nullptr                            ? "pinned memory"
         : variable->kind() == DeviceVariable::constant ? "constant memory"
                                                        : "global memory";
}

unsigned in_cluster(unsigned thread, const Worker* block) { return block->rank() * max_block_threads + thread; }

std::uint64_t number_of(uint3 block) {
  return block.x + (std::uint64_t(block.y) + std::uint64_t(block.z) * gridDim.y) * gridDim.x;
}

}  // namespace

// ---- pages

GlobalShadow::Page* GlobalShadow::page_at(std::uintptr_t address, bool make) {
  const std::uintptr_t place = address / page_bytes;
  Recent& recent = recent_[place % recent_.size()];
  if (recent.place == place) return recent.page;
  auto found = pages_.find(place);
  if (found == pages_.end()) {
    if (!make) return nullptr;
    if (pages_.size() >= most_pages) {
      if (!full_) noted("the program uses more memory than is searched for races: what lies beyond is not");
      full_ = true;
      return nullptr;
    }
    found = pages_.emplace(place, std::make_unique<Page>()).first;
  }
  recent = {place, found->second.get()};
  return recent.page;
}

void GlobalShadow::mark_written(std::uintptr_t address, std::size_t bytes, bool now) {
  for (const std::uintptr_t end = address + bytes; address < end;) {
    const std::uintptr_t stop = std::min(end, (address / page_bytes + 1) * page_bytes);
    Page* const page = page_at(address, true);
    if (page == nullptr) return;
    for (; address < stop;) {
      const std::size_t at = address % page_bytes, bit = at % 64, n = std::min<std::size_t>(64 - bit, stop - address);
      const std::uint64_t mask = (n == 64 ? ~0ull : (1ull << n) - 1) << bit;
      if (now)
        page->written[at / 64] |= mask;
      else
        page->written[at / 64] &= ~mask;
      address += n;
    }
  }
}

// Any of the bytes.
bool GlobalShadow::is_written(std::uintptr_t address, std::size_t bytes) {
  if (const std::size_t bit = address % 64; bit + bytes <= 64) {
    const Page* const page = page_at(address, false);
    if (page == nullptr) return full_;
    const std::uint64_t mask = bytes == 64 ? ~0ull : (1ull << bytes) - 1;
    return (page->written[address % page_bytes / 64] >> bit & mask) != 0;
  }
  for (std::size_t i = 0; i < bytes; ++i) {
    const Page* const page = page_at(address + i, false);
    if (page == nullptr) return full_;
    const std::size_t at = (address + i) % page_bytes;
    if (page->written[at / 64] >> (at % 64) & 1) return true;
  }
  return false;
}

// ---- the host's part

void GlobalShadow::allocated(const void* address, std::size_t bytes, bool written) {
  if (written) mark_written(reinterpret_cast<std::uintptr_t>(address), bytes, true);
}

void GlobalShadow::freed(const void* address, std::size_t bytes) {
  settle();
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  for (std::uintptr_t place = begin / page_bytes; place <= (begin + bytes - 1) / page_bytes; ++place)
    pages_.erase(place);
  recent_.fill({});
  allocated_in_streams_.erase(begin);
}

void GlobalShadow::forget(const void* address, std::size_t bytes) {
  settle();
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (page_at(begin, false) == nullptr && page_at(begin + bytes - 1, false) == nullptr && bytes <= page_bytes) return;
  mark_written(begin, bytes, false);
  for (std::uintptr_t at = begin; at < begin + bytes;) {
    Page* const page = page_at(at, false);
    const std::uintptr_t stop = std::min(begin + bytes, (at / page_bytes + 1) * page_bytes);
    if (page != nullptr && !page->cells.empty()) {
      const std::size_t step = page->step();
      std::fill(page->cells.begin() + static_cast<std::ptrdiff_t>(at % page_bytes / step),
                page->cells.begin() + static_cast<std::ptrdiff_t>(((stop - 1) % page_bytes) / step + 1), Cell());
      page->readers.clear();
      page->covered.clear();
    }
    at = stop;
  }
}

void GlobalShadow::host_writes(const void* to, std::size_t bytes) {
  mark_written(reinterpret_cast<std::uintptr_t>(to), bytes, true);
}

bool GlobalShadow::any_written(const void* from, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(from);
  for (std::size_t i = 0; i < bytes; i += 64)
    if (is_written(begin + i, std::min<std::size_t>(64, bytes - i))) return true;
  return false;
}

GlobalShadow::Unwritten GlobalShadow::unwritten(const void* from, std::size_t bytes) {
  Unwritten found;
  const auto begin = reinterpret_cast<std::uintptr_t>(from), end = begin + bytes;
  std::uintptr_t since = end;  // where the piece began in which `address` is; `end` if it is in none
  const auto is = [&](std::uintptr_t address, bool written) {
    if (!written) {
      if (since == end) ++found.pieces, since = address;
      return;
    }
    if (since != end && address - since > found.bytes) found.first = since - begin, found.bytes = address - since;
    since = end;
  };
  for (std::uintptr_t address = begin; address < end;) {
    const std::uintptr_t stop = std::min(end, (address / 64 + 1) * 64);
    const Page* const page = page_at(address, false);
    const std::uint64_t word = page == nullptr ? (full_ ? ~0ull : 0) : page->written[address % page_bytes / 64];
    if (word == 0 || word == ~0ull)
      is(address, word != 0);
    else
      for (std::uintptr_t each = address; each < stop; ++each) is(each, word >> each % 64 & 1);
    address = stop;
  }
  if (since != end) {
    const std::uintptr_t last = since;
    since = end;
    if (end - last > found.bytes) found.first = last - begin, found.bytes = end - last;
  }
  return found;
}

void GlobalShadow::host_copies(const void* to, const void* from, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(from);
  for (std::size_t i = 0; i < bytes; i += 64) {
    const std::size_t n = std::min<std::size_t>(64, bytes - i);
    mark_written(reinterpret_cast<std::uintptr_t>(to) + i, n, is_written(begin + i, n));
  }
}

// ---- streams

std::uint32_t GlobalShadow::stream_begins(const void* stream, const void* kernel, std::function<std::string()> what) {
  const std::uint32_t number = streams_.begin(stream);
  if (!streams_.several()) return number;
  first_slice_ += static_cast<std::uint32_t>(slices_.size());
  slices_.clear();
  operations_.push_back({first_slice_, number, stream, kernel, std::move(what)});
  asked_.fill({});
  return number;
}

const GlobalShadow::Operation& GlobalShadow::operation_of(const Event& event) const {
  const auto after =
      std::upper_bound(operations_.begin(), operations_.end(), event.slice,
                       [](std::uint32_t slice, const Operation& each) { return slice < each.first_slice; });
  return *std::prev(after);
}

bool GlobalShadow::ordered_by_streams(const Event& event) {
  if (event.slice == 0 || operations_.empty() || event.slice < operations_.front().first_slice) return true;
  for (const bool ordered : {true, false})
    if (asked_[ordered].has(event.slice)) return ordered;  // as a rule
  const Operation& its = operation_of(event);
  const bool current = &its == &operations_.back();
  const bool ordered = current || streams_.ordered(its.stream, its.number);
  asked_[ordered] = {its.first_slice, (current ? ~0u : (&its + 1)->first_slice) - its.first_slice};
  return ordered;
}

// Beside the latest read one is kept that a later write may race with: of an operation that does not come before this
// one, or else of another block, or else of another thread.
void GlobalShadow::note_read(Page& page, std::uintptr_t address, const Event& now) {
  auto& [latest, kept] = page.cell(address).read;
  if (latest.slice < first_slice_) {
    if (!ordered_by_streams(latest)) {
      if (!asked_[false].has(kept.slice) && !ordered_by_streams(kept)) note_reader(page, address, kept);
      kept = latest;
    }
  } else if (latest.thread != now.thread || slice_of(latest).block != block_) {
    const bool matters_more = kept.slice < first_slice_ ? !ordered_by_streams(kept) : slice_of(kept).block != block_;
    if (!matters_more) kept = latest;
  }
  latest = now;
}

void GlobalShadow::note_reader(Page& page, std::uintptr_t address, const Event& read) {
  const std::uint32_t operation = operation_of(read).number;
  const auto known = [&](const Readers& more) { return operation_of(more.one).number == operation; };
  auto its = std::find_if(page.readers.begin(), page.readers.end(), known);
  if (its == page.readers.end()) {
    std::erase_if(page.readers, [&](const Readers& more) {
      const Operation& other = operation_of(more.one);
      return streams_.host_knows(other.stream, other.number);
    });
    its = page.readers.insert(page.readers.end(), {read, {}});
  }
  for (std::size_t i = 0; i < page.step(); ++i) its->where.set(address / page.step() * page.step() % page_bytes + i);
}

void GlobalShadow::race_of_streams(const Event& before, const std::function<std::string()>& what, std::int32_t pc) {
  if (!said_.insert(pair_of(before.pc, pc)).second) return;
  const Operation& its = operation_of(before);
  const std::string other =
      its.kernel != nullptr ? "kernel " + kernel_name(its.kernel) + " at " + line_of(far(before.pc)) : its.what();
  if (!said_lines_.insert(line_of(far(pc)) + " " + other).second) return;
  found_mistake(
      what() + " and " +
      (its.allocates ? other : std::string("the ") + word(before.access) + " of the same memory by " + other) +
      " are not ordered: they are in different streams (or nodes of a graph), and neither an event nor the host waits "
      "in between");
}

void GlobalShadow::copy_access(const void* memory, std::size_t bytes, bool writes, bool noted) {
  settle();
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (!streams_.several()) {  // else stream_begins() has
    first_slice_ += static_cast<std::uint32_t>(slices_.size());
    slices_.clear();
  }
  slices_.push_back({0, 0, 0});
  const Event now = {0, first_slice_, 0, 0, writes ? Access::write : Access::read, false};
  for (std::uintptr_t at = begin; at < begin + bytes;) {
    const std::uintptr_t stop = std::min(begin + bytes, (at / page_bytes + 1) * page_bytes);
    if (const Page* const known = noted ? nullptr : page_at(at, false); !noted && (!known || known->cells.empty())) {
      at = stop;
      continue;
    }
    Page* const page = with_cells(at, (begin | bytes) % 4);
    if (page == nullptr) return;
    for (; at < stop; at += page->step()) {
      Cell& cell = page->cell(at);
      const auto check = [&](const Event& before) {
        if (!ordered_by_streams(before))
          race_of_streams(
              before, [&] { return operations_.back().what() + (writes ? ": its write" : ": its read"); }, 0);
      };
      check(cell.written);
      if (writes) page->each_read(at, check);
      if (!noted) continue;
      if (writes)
        cell.written = now;
      else
        note_read(*page, at, now);
    }
  }
}

bool GlobalShadow::awaited(const void* memory, std::size_t bytes, bool used) {
  settle();
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  std::uint32_t done = 0;
  for (std::uintptr_t at = begin; at < begin + bytes;) {
    Page* const page = page_at(at, false);
    if (page == nullptr && full_) return true;
    const std::uintptr_t stop = std::min(begin + bytes, (at / page_bytes + 1) * page_bytes);
    bool found = false;
    const auto look = [&](const Event& each) {
      if (operations_.empty() || each.slice < operations_.front().first_slice)
        found = found || (each.slice != 0 && each.slice >= awaited_from_);
      if (found || each.slice == done || operations_.empty() || each.slice < operations_.front().first_slice) return;
      const Operation& its = operation_of(each);
      found = !streams_.host_knows(its.stream, its.number);
      done = each.slice;
    };
    for (; page != nullptr && !page->cells.empty() && at < stop && !found; at += page->step()) {
      look(page->cell(at).written);
      if (used) page->each_read(at, look);
    }
    if (found) return true;
    at = stop;
  }
  return false;
}

void GlobalShadow::host_sees(const void* flag) {
  const auto address = reinterpret_cast<std::uintptr_t>(flag);
  Page* const page = page_at(address, false);
  if (page == nullptr || page->cells.empty()) return;
  const Event& written = page->cell(address).written;
  if (operations_.empty() || written.slice < operations_.front().first_slice) return;
  const Operation& its = operation_of(written);
  streams_.host_learns(its.stream, its.number);
}

void GlobalShadow::allocated_in(const void* stream, const void* memory, std::size_t bytes,
                                std::function<std::string()> what) {
  if (!streams_.several()) return;
  stream_begins(stream, nullptr, std::move(what));
  operations_.back().allocates = true;
  slices_.push_back({0, 0, 0});
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  allocated_in_streams_[begin] = {begin + bytes, first_slice_};  // noted where it is first touched: with_cells()
}

void GlobalShadow::freed_in(const void* stream, const void* memory, std::size_t bytes,
                            std::function<std::string()> what) {
  if (!streams_.several()) return;
  stream_begins(stream, nullptr, std::move(what));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  for (std::uintptr_t at = begin; at < begin + bytes;) {
    Page* const page = page_at(at, false);
    const std::uintptr_t stop = std::min(begin + bytes, (at / page_bytes + 1) * page_bytes);
    bool found = false;
    const auto look = [&](const Event& before) {
      if (found || ordered_by_streams(before) || operation_of(before).allocates) return;
      race_of_streams(before, operations_.back().what, 0);
      found = true;
    };
    for (; page != nullptr && !page->cells.empty() && at < stop && !found; at += page->step()) {
      look(page->cell(at).written);
      page->each_read(at, look);
    }
    if (found) return;
    at = stop;
  }
}

// ---- time

void GlobalShadow::new_slice(std::uint32_t interval) {
  slices_.push_back({block_, interval, epoch_});
  slice_ = first_slice_ + static_cast<std::uint32_t>(slices_.size()) - 1;
  interval_ = interval;
}

void GlobalShadow::launch_begins() {
  launch_ends();  // of one that has failed
  first_slice_ += static_cast<std::uint32_t>(slices_.size());
  slices_.clear();
  flags_.clear();
  acquired_.clear();
  epoch_ = 0;
}

void GlobalShadow::launch_ends() {
  settle();
  for (const auto& [pc, compares, message] : std::exchange(beside_sets_, {})) {
    const Setter& setter = setters_[pc];
    const bool alone = std::none_of(setters_.begin(), setters_.end(), [&](const auto& each) {
      const Setter& other = each.second;  // another value, by another instruction
      return other.size != 0 && other.one_place && other.place == setter.place &&
             std::memcmp(other.value.data(), setter.value.data(), setter.size) != 0;
    });
    if (setter.one_value && (setter.looks || setter.together || (setter.one_place && alone && compares)))
      noted(message +
            ": all threads that write there store the same value, so the read finds that or the old one. That is "
            "right if it does not matter which, nor how many threads find the old one");
    else
      found_mistake(message);
  }
  setters_.clear();
  several_values_ = {};
}

void GlobalShadow::block_begins(std::uint64_t block) {
  settle();
  block_ = block;
  epoch_ = 0;
  last_fence_interval_ = earlier_fence_interval_ = 0;
  fences_.clear();
  fence_slices_.clear();
  stores_.clear();
  new_slice(1);
}

void GlobalShadow::barrier() {
  settle();
  new_slice(interval_ + 1);
}

void GlobalShadow::grid_barrier() {
  settle();
  ++epoch_;
  new_slice(interval_ + 1);
}

void GlobalShadow::fence(unsigned thread) {
  settle();
  if (last_fence_interval_ != interval_) earlier_fence_interval_ = last_fence_interval_;
  last_fence_interval_ = interval_;
  fences_[thread] = interval_;
  fence_slices_[thread / 32] = slice_;
  new_slice(interval_);
}

GlobalShadow::Parked GlobalShadow::park() const {
  return {block_, epoch_, last_fence_interval_, earlier_fence_interval_, fences_, fence_slices_, interval_};
}

void GlobalShadow::unpark(const Parked& parked) {
  block_ = parked.block;
  epoch_ = parked.epoch;
  last_fence_interval_ = parked.last_fence_interval;
  earlier_fence_interval_ = parked.earlier_fence_interval;
  fences_ = parked.fences;
  fence_slices_ = parked.fence_slices;
  stores_.clear();
  new_slice(parked.interval);
}

// ---- order

bool GlobalShadow::unordered(const Event& before, const MemoryAccess& now, const Shadow& shadow) {
  if (before.slice < first_slice_) return false;
  const Slice& its = slice_of(before);
  if (its.block == block_)
    return its.interval == interval_ && before.thread != now.thread &&
           shadow.unordered(before.clock, in_cluster(before.thread, worker), in_cluster(now.thread, worker));
  for (const Worker* each : worker->cluster())
    if (number_of(each->index()) == its.block)
      if (!shadow.unordered(before.clock, in_cluster(before.thread, each), in_cluster(now.thread, worker)))
        return false;
  if (its.epoch < epoch_) return false;
  if (said_.contains(pair_of(before.pc, near(now.pc)))) return false;
  const auto own = acquired_.find(block_);
  return own == acquired_.end() || !told(before, its, static_cast<std::uint16_t>(now.thread),
                                         shadow.knows_other_warps(in_cluster(now.thread, worker)));
}

// Whether this thread knows of the event by a flag, or by what flags told a block that told it.
bool GlobalShadow::told(const Event& before, const Slice& its, std::uint16_t thread, bool everything) {
  const auto tells = [&](const Release& release) {
    return release.everything || its.interval < release.fence_interval ||
           its.interval <= release.earlier_fence_interval ||
           (before.thread / 32 == release.thread / 32 && before.slice <= release.fence_slice);
  };
  // Blocks, and how much of what they have acquired counts; and of each flag the version of which all is known here.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> blocks = {{block_, ~0u}};
  std::unordered_map<std::uint64_t, std::uint32_t> searched;
  std::unordered_map<std::uintptr_t, std::uint32_t> heard;
  for (std::size_t n = 0; n < blocks.size(); ++n) {
    const auto [block, acquired] = blocks[n];
    const std::vector<Acquired>& all = acquired_[block];
    const auto each_flag = [&](const auto& visit) {
      for (std::size_t i = std::min<std::size_t>(acquired, all.size()); i-- > 0;) {
        if (block == block_ && !everything && all[i].thread / 32 != thread / 32 && all[i].interval >= interval_)
          continue;
        const auto known = heard.find(all[i].flag);
        if (known != heard.end() && all[i].version <= known->second) continue;
        if (visit(all[i], flags_[all[i].flag])) return true;
      }
      return false;
    };
    if (each_flag([&](const Acquired& each, const Flag& flag) {
          const auto by = flag.releases.find(its.block);
          return by != flag.releases.end() &&
                 std::any_of(by->second.begin(), by->second.end(),
                             [&](const Release& one) { return one.version <= each.version && tells(one); });
        }))
      return true;
    each_flag([&](const Acquired& each, const Flag& flag) {
      heard[each.flag] = each.version;
      for (const auto& [other, releases] : flag.releases) {
        if (other == its.block || other == block) continue;
        const auto later = std::find_if(releases.begin(), releases.end(),
                                        [&](const Release& release) { return release.version > each.version; });
        if (later == releases.begin()) continue;
        std::uint32_t& known = searched[other];
        if (const std::uint32_t more = std::prev(later)->acquired; more > known)
          blocks.emplace_back(other, known = more);
      }
      return false;
    });
    if (n == 10000) return true;  // in doubt
  }
  return false;
}

// Whether the block has looked at a flag of the other one.
bool GlobalShadow::has_heard(std::uint64_t block, std::uint64_t other) const {
  const auto known = acquired_.find(block);
  return known != acquired_.end() && std::any_of(known->second.begin(), known->second.end(), [&](const Acquired& each) {
           const auto flag = flags_.find(each.flag);
           const auto by = flag->second.releases.find(other);
           return by != flag->second.releases.end() && by->second.front().version <= each.version;
         });
}

// Of two accesses that nothing orders, both atomic or volatile: whether they are of lanes that hand each other sums.
bool GlobalShadow::relies_on_step(const Event& before, const MemoryAccess& now) const {
  if (!before.is_volatile || !now.is_volatile || is_atomic(before.access) || is_atomic(now.access)) return false;
  if (before.access == now.access || slice_of(before).block != block_ || before.thread / 32 != now.thread / 32)
    return false;
  if (!fences_.empty()) return false;
  const auto own = stores_.find(now.access == Access::read ? now.thread : before.thread);
  return own != stores_.end() && own->second.interval == interval_ &&
         (own->second.others || own->second.first != now.address);
}

void GlobalShadow::synchronise(const MemoryAccess& a, const Shadow& shadow) {
  if (reads(a.access) && !flags_.empty()) {
    const auto flag = flags_.find(a.address);
    if (flag != flags_.end()) {
      auto& own = acquired_[block_];
      const auto thread = static_cast<std::uint16_t>(a.thread);
      const Acquired now = {a.address, flag->second.version, interval_, thread};
      // A loop that waits reads the same flag again and again.
      if (!own.empty() && own.back().flag == now.flag && own.back().thread == thread &&
          own.back().interval == interval_)
        own.back() = now;
      else
        own.push_back(now);
    }
  }
  if (!writes(a.access)) return;
  if (a.access == Access::write) {
    Stores& own = stores_[a.thread];
    if (own.interval != interval_)
      own = {interval_, a.address, false};
    else if (own.first != a.address)
      own.others = true;
  }
  const auto fence = fences_.find(a.thread);
  const std::uint32_t before = last_fence_interval_ == interval_ ? earlier_fence_interval_ : last_fence_interval_;
  if (fence == fences_.end() && before == 0) return;
  Flag& flag = flags_[a.address];
  const auto own = acquired_.find(block_);
  auto& releases = flag.releases[block_];
  const Release now = {++flag.version,
                       fence != fences_.end() ? fence_slices_[a.thread / 32] : 0,
                       fence != fences_.end() ? fence->second : 0,
                       before,
                       own != acquired_.end() ? static_cast<std::uint32_t>(own->second.size()) : 0,
                       static_cast<std::uint16_t>(a.thread),
                       shadow.knows_other_warps(in_cluster(a.thread, worker))};
  const std::uint32_t version = releases.size() < 64 ? now.version : releases.back().version;  // in doubt too early
  if (releases.size() < 64) releases.emplace_back();
  releases.back() = now;
  releases.back().version = version;
}

// ---- accesses

bool GlobalShadow::of_this_thread(const Event& event, const MemoryAccess& now) const {
  return event.slice >= first_slice_ && event.thread == now.thread && slice_of(event).block == block_;
}

// Whether something else may not know yet of a plain write, which an atomic access covers.
bool GlobalShadow::matters_when_covered(const Event& written) const {
  if (is_atomic(written.access) || written.is_volatile || written.slice == 0) return false;
  if (written.slice >= first_slice_) return slice_of(written).epoch == epoch_ && gridDim.x * gridDim.y * gridDim.z > 1;
  if (!streams_.several() || written.slice < operations_.front().first_slice) return false;
  const Operation& its = operation_of(written);
  return !streams_.host_knows(its.stream, its.number);
}

// The cell is that of its first byte.
void GlobalShadow::note_store(const MemoryAccess& a, const Cell& cell) {
  stored_ = {a, blockIdx, block_, nullptr, false, false, false, {}};
  std::memcpy(stored_.old.data(), reinterpret_cast<const void*>(a.address), a.size);
  stored_.first = stored_.old[0] == '\xff' && !is_written(a.address, a.size);  // what new memory is filled with
  const std::int32_t pc = near(a.pc);
  std::int32_t& known = several_values_[static_cast<std::uint32_t>(pc) % several_values_.size()];
  if (a.is_volatile || known == pc) return;
  Setter& setter = setters_[pc];
  if (!setter.one_value) {
    known = pc;
    return;
  }
  stored_.setter = &setter;
  for (const Event& read : cell.read) stored_.looked = stored_.looked || of_this_thread(read, a);
  stored_.again = cell.written.slice >= first_slice_ && !of_this_thread(cell.written, a);
}

void GlobalShadow::compare_set(const MemoryAccess& now) {
  Setter& setter = *stored_.setter;
  const auto* const stored = reinterpret_cast<const char*>(now.address);
  if (setter.size == 0) {
    setter.size = now.size;
    setter.place = now.address;
    std::memcpy(setter.value.data(), stored, now.size);
  } else if (setter.size != now.size || std::memcmp(setter.value.data(), stored, now.size) != 0) {
    setter.one_value = false;
  }
  if (setter.place != now.address) setter.one_place = false;
  if (!stored_.looked || (!stored_.again && std::memcmp(stored_.old.data(), stored, now.size) == 0))
    setter.looks = false;
}

// What is known of a place, before the store that comes now.
GlobalShadow::Change GlobalShadow::change_before(const Event& written) const {
  if (written.slice < first_slice_ || written.change == Change::no) return Change::no;
  const Slice& its = slice_of(written);
  if (its.epoch < epoch_) return Change::no;
  return its.block == block_ && its.interval < interval_ ? Change::earlier : written.change;
}

// Whether the reader finds the same before that store and behind it.
bool GlobalShadow::finds_no_change(const Event& written) const {
  return written.change == Change::no || (written.change == Change::earlier && slice_of(written).block == block_);
}

void GlobalShadow::compare_stored() {
  const MemoryAccess now = std::exchange(stored_.now, {});
  if (worker == nullptr) return stored_over_.clear();  // the launch has failed
  const auto* const stored = reinterpret_cast<const char*>(now.address);
  const bool same = !stored_.first && std::memcmp(stored_.old.data(), stored, now.size) == 0;
  if (stored_.setter != nullptr) compare_set(now);
  if (!same && !stored_.first) unchanged_.changes(now.pc);
  const auto changes = [&](std::uintptr_t at, std::size_t bytes) {
    const std::size_t i = at - now.address, n = std::min(bytes, now.size - i);
    return stored_.first || std::memcmp(stored_.old.data() + i, stored + i, n) != 0;
  };
  for (std::uintptr_t at = now.address; !same && at < now.address + now.size;) {
    Page* const page = page_at(at, false);
    if (page == nullptr) break;
    if (changes(at, page->step())) page->cell(at).written.change = Change::yes;
    at += page->step();
  }
  for (const auto& [address, before] : stored_over_) {
    if (before.access == Access::write) {
      store_over(before, now, same);
    } else if (const Page* const page = page_at(address, false); changes(address, page->step())) {
      race(before, now, stored_.block, stored_.block_number);
    } else {
      unchanged(before, now, stored_.block, stored_.block_number);
    }
  }
  stored_over_.clear();
}

// A read beside a store of what was there.
void GlobalShadow::unchanged(const Event& before, const MemoryAccess& now, uint3 block, std::uint64_t block_number) {
  const void *const store = now.access == Access::write ? now.pc : far(before.pc), *const read =
                                                                                       now.access == Access::write
                                                                                           ? far(before.pc)
                                                                                           : now.pc;
  unchanged_.beside(store, read, worker->launch().kernel, [&] { return message_of(before, now, block, block_number); });
}

void GlobalShadow::read_only(const MemoryAccess& a) {
  settle();
  for (std::uintptr_t at = a.address; at < a.address + a.size; at += 4) {
    Page* const page = page_at(at, false);
    if (page == nullptr || page->cells.empty()) continue;
    const Event& written = page->cell(at).written;
    if (written.slice < first_slice_ || written.slice == 0) continue;
    if (!said_.insert(pair_of(written.pc, near(a.pc))).second) return;  // each line is asked of another program
    if (!said_lines_.insert("__ldg " + line_of(a.pc) + " " + line_of(far(written.pc))).second) return;
    found_mistake(
        here(a.pc) + "__ldg() reads " + bytes_text(a.size) + " of global memory that this launch has written, " +
        "by " + block_text(slice_of(written).block, gridDim) + ", thread " + text(index_of(written.thread, blockDim)) +
        " at " + line_of(far(written.pc)) + ": it may only read what no thread of the kernel writes");
    return;
  }
}

void GlobalShadow::access(const MemoryAccess& a, const Shadow& shadow) {
  settle();
  const bool is_flag = is_atomic(a.access) || a.is_volatile, several = streams_.several();
  if (is_flag) synchronise(a, shadow);
  const bool on_device = DeviceMemory::instance().contains(reinterpret_cast<const void*>(a.address));
  if (on_device && reads(a.access) && a.access != Access::exchange && !is_written(a.address, a.size) &&
      said_.insert(static_cast<std::uint32_t>(near(a.pc))).second && !full_)
    found_mistake(here(a.pc) + "read of " + bytes_text(a.size) +
                  " of global memory that nobody has written (cudaMalloc does not clear it)");
  Event now = {
      near(a.pc), slice_,       shadow.clock_of(in_cluster(a.thread, worker)), static_cast<std::uint16_t>(a.thread),
      a.access,   a.is_volatile};
  now.of_block = a.of_block;
  // Of other stores it is known at once that they change something, or it is taken for granted.
  const bool stores = a.access == Access::write && a.size <= stored_.old.size();
  for (std::uintptr_t at = a.address; at < a.address + a.size;) {
    Page* const page = with_cells(at, (a.address | a.size) % 4);
    if (page == nullptr) return;
    const std::uintptr_t stop = std::min(a.address + a.size, (at / page_bytes + 1) * page_bytes);
    for (const std::size_t step = page->step(); at < stop; at += step) {
      Cell& cell = page->cells[at % page_bytes / step];
      const auto races_with = [&](const Event& before) {
        if (before.slice < first_slice_) return false;
        const bool flags = is_flag && (is_atomic(before.access) || before.is_volatile) &&
                           ((!a.of_block && !before.of_block) || slice_of(before).block == block_);
        return (!flags || relies_on_step(before, a)) && unordered(before, a, shadow);
      };
      const auto kept = is_atomic(a.access) && !page->covered.empty() ? page->covered.find(at) : page->covered.end();
      const Event* const covered = kept != page->covered.end() ? &kept->second : nullptr;
      if (several) {
        const auto check = [&](const Event& before) {
          if (is_flag && (is_atomic(before.access) || before.is_volatile)) return;
          if (before.slice < first_slice_ && !ordered_by_streams(before))
            race_of_streams(
                before,
                [&] {
                  return here(a.pc) + "this " + word(a.access) + " of " + bytes_text(a.size) + " of " +
                         kind_of(a.address);
                },
                now.pc);
        };
        check(cell.written);
        if (writes(a.access)) page->each_read(at, check);
        if (covered != nullptr) check(*covered);
      }
      if (stores && at == a.address) note_store(a, cell);
      const auto found = [&](const Event& before) {
        if (stores && !is_atomic(before.access))
          stored_over_.push_back({at, before});
        else if (a.access == Access::read && before.access == Access::write && finds_no_change(before))
          unchanged(before, a, blockIdx, block_);
        else
          race(before, a, blockIdx, block_);
      };
      if (races_with(cell.written)) found(cell.written);
      if (covered != nullptr && races_with(*covered)) found(*covered);
      if (writes(a.access)) {
        for (const Event& read : cell.read)
          if (races_with(read)) found(read);
        if (stores) now.change = change_before(cell.written);
        // A thread's own plain write still counts behind its atomic one.
        const bool behind = is_flag && cell.written.slice == slice_ && cell.written.thread == now.thread &&
                            !is_atomic(cell.written.access) && !cell.written.is_volatile;
        if (is_atomic(a.access) && !behind && matters_when_covered(cell.written)) page->covered[at] = cell.written;
        if (!behind) cell.written = now;
      } else {
        note_read(*page, at, now);
      }
    }
  }
  if (on_device && writes(a.access)) mark_written(a.address, a.size, true);
}

GlobalShadow::Page* GlobalShadow::with_cells(std::uintptr_t address, std::size_t odd_bytes) {
  Page* const page = page_at(address, true);
  if (page == nullptr) return nullptr;
  if (page->cells.empty()) {
    Cell cell;
    if (const auto after = allocated_in_streams_.upper_bound(address);
        after != allocated_in_streams_.begin() && address < std::prev(after)->second.end) {
      cell.written.slice = std::prev(after)->second.slice;
      cell.written.access = Access::write;
    }
    page->cells.resize(page_bytes / 4, cell);
  }
  if (!page->bytes && odd_bytes != 0) {
    std::vector<Cell> divided(page_bytes);
    for (std::size_t i = 0; i < page_bytes; ++i) divided[i] = page->cells[i / 4];
    page->cells.swap(divided);
    page->bytes = true;
  }
  return page;
}

std::string GlobalShadow::message_of(const Event& before, const MemoryAccess& now, uint3 block,
                                     std::uint64_t block_number) const {
  const std::uint64_t its_block = slice_of(before).block;
  const bool another_block = its_block != block_number;
  std::string message = "kernel " + kernel_name(worker->launch().kernel) + ", block " + text(block) + ", thread " +
                        text(index_of(now.thread, blockDim)) + ", at " + line_of(now.pc) + ": race on " +
                        kind_of(now.address) + ": nothing orders this " + word(now.access) + " of " +
                        bytes_text(now.size) + " and the " + word(before.access) + " of the same memory by " +
                        (another_block ? block_text(its_block, gridDim) + ", " : std::string()) + "thread " +
                        text(index_of(before.thread, blockDim)) + " at " + line_of(far(before.pc));
  if (!another_block)
    message += before.thread / 32 == now.thread / 32
                   ? before.is_volatile && now.is_volatile
                         ? ran_in_step
                         : " (two lanes of one warp: only __syncwarp(), or atomic functions, would)"
                   : " (two threads of one block: only __syncthreads(), or atomic functions, would)";
  else if (before.of_block || now.of_block)
    message += " (atomicAdd_block() and the like are atomic for the threads of one block, not between blocks)";
  else if (is_atomic(before.access) || is_atomic(now.access))
    message += " (both would have to be atomic, or a __threadfence() and a flag lie between)";
  else if (has_heard(block_number, its_block))
    message +=
        " (a flag lies between, but what other threads do than the one that sets it and the one that looks at it is "
        "ordered only with a __syncthreads() before the __threadfence() and the flag, and one behind the wait)";
  else
    message += " (between blocks only atomic functions, a flag behind a __threadfence(), or another launch would)";
  return message;
}

void GlobalShadow::race(const Event& before, const MemoryAccess& now, uint3 block, std::uint64_t block_number) {
  if (!said_.insert(pair_of(before.pc, near(now.pc))).second) return;
  const bool stores = now.access == Access::write;
  if (!stores || before.access != Access::write)
    unchanged_.races(stores ? now.pc : far(before.pc), stores ? far(before.pc) : now.pc);
  if (!said_lines_.insert(line_of(now.pc) + " " + line_of(far(before.pc))).second) return;
  const std::string message = message_of(before, now, block, block_number);
  // Many a correct program looks at a minimum, say, before it updates it.
  const auto pair_is = [&](Access one, Access other) {
    return (before.access == one && now.access == other) || (before.access == other && now.access == one);
  };
  if (pair_is(Access::read, Access::atomic) || pair_is(Access::read, Access::exchange)) {
    noted(message + ": the read may be of an old value");
  } else if (pair_is(Access::read, Access::write) && !before.is_volatile && !now.is_volatile) {
    const auto [set, read] =
        now.access == Access::write ? std::pair(now.pc, far(before.pc)) : std::pair(far(before.pc), now.pc);
    beside_sets_.push_back({near(set), code_at(read) == AccessCode::compares_with_a_number, message});
  } else {
    found_mistake(message);
  }
}

// Two threads have stored; the same, which is no mistake?
void GlobalShadow::store_over(const Event& before, const MemoryAccess& now, bool same) {
  const std::uint64_t pair = pair_of(before.pc, near(now.pc));
  for (const std::int32_t pc : {before.pc, near(now.pc)})
    if (same) setters_[pc].together = true;
  if (!same) return race(before, now, stored_.block, stored_.block_number);
  if (same_.insert(pair).second)
    noted("kernel " + kernel_name(worker->launch().kernel) + ", at " + line_of(now.pc) +
          ": several threads store the same value to the same global memory, which does no harm");
}

}  // namespace simt
