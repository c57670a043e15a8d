#include "simt/trace/walk_recorder.h"

#include <algorithm>
#include <memory>

#include "simt/engine/engine.h"
#include "simt/hopper/bulk_copy.h"
#include "simt/hopper/mbarrier.h"
#include "simt/hopper/wgmma.h"
#include "simt/trace/counter.h"
#include "simt/trace/operands.h"

namespace simt {
namespace {

void add(RowList& rows, std::size_t row) {
  if (rows.empty() || rows.back() != row) rows.push_back(row);
}

// The number of a gate (walk.h).
int gate_of(const Awaited& awaited) {
  return awaited.orders == Orders::phase ? static_cast<int>(static_cast<const Mbarrier&>(awaited).index)
                                         : -static_cast<const NamedBarrier&>(awaited).number;
}

// Within the shared memory of that block, whose own pointer it is.
std::size_t shared_offset(const void* pointer, const Worker& block) {
  return block.shared().offset_of(reinterpret_cast<std::uintptr_t>(pointer));
}
// The same of an access or an operand; none in other blocks' memory, which a walk does not show.
std::size_t own_offset(std::size_t offset) {
  const std::size_t each = worker->shared_bytes_of_each();
  return each != 0 && offset / each == worker->rank() ? offset % each : SharedMemory::no_offset;
}

WalkRecorder* recorder = nullptr;  // between walk_begin() and walk_end()

}  // namespace

void walk_begin(std::vector<Tensor> tensors) {
  walk_end();
  recorder = new WalkRecorder(std::move(tensors));
  if (Counter* const counter = trace_counter()) counter->tell(recorder);
  simt::add(*recorder);
}

std::vector<LaunchWalk> walk_end() {
  if (recorder == nullptr) return {};
  remove(*recorder);
  if (Counter* const counter = trace_counter()) counter->tell(nullptr);
  std::vector<LaunchWalk> launches = recorder->take();
  delete std::exchange(recorder, nullptr);
  return launches;
}

WalkRecorder::WalkRecorder(std::vector<Tensor> tensors) : tensors_(std::move(tensors)), last_(tensors_.size()) {
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    for (auto& last : last_[i]) last.resize(tensors_[i].rows);
}

void WalkRecorder::launch_begins(const Launch& launch) {
  kernel_ = launch.kernel;
  current_ = {};
  current_.grid = launch.grid;
  current_.block = launch.block;
  current_.cluster = launch.cluster;
  current_.dynamic_shared_bytes = launch.shared_bytes;
  places_.clear();
  names_.clear();
  before_ = {};
  now_.warps.assign((launch.block.x * launch.block.y * launch.block.z + 31) / 32, {});
  pausing_.assign(launch.cluster_blocks(), now_);
}

void WalkRecorder::block_begins() {
  for (WarpSteps& warp : now_.warps) warp = {};
  now_.number = current_.blocks.size();
  current_.blocks.push_back({blockIdx, {}});
  now_.gates.clear();
  now_.chunks.clear();
  now_.so_far = {};
  steps_begin();
}

void WalkRecorder::steps_begin() {
  now_.step_of.fill(0);
  for (WarpSteps& warp : now_.warps) {
    WarpStep first;
    first.number = ++steps_;
    if (!warp.steps.empty()) first.name = warp.steps.back().name;
    warp = {};
    warp.steps.push_back(std::move(first));
  }
}

void WalkRecorder::launch_ends() {
  current_.kernel = kernel_name(kernel_);
  launches_.push_back(std::move(current_));
}

// --- What threads do ---

template <class Visit>
void WalkRecorder::for_each_row(std::uintptr_t address, std::size_t bytes, Visit visit) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(tensor.data);
    if (offset >= tensor.rows * tensor.row_bytes) continue;
    const std::size_t last = std::min((offset + bytes - 1) / tensor.row_bytes, tensor.rows - 1);
    for (std::size_t row = offset / tensor.row_bytes; row <= last; ++row) {
      const std::size_t start = row * tensor.row_bytes;
      visit(i, row, Extent{std::max(offset, start) - start, std::min(offset + bytes - start, tensor.row_bytes)});
    }
    return;
  }
}

void WalkRecorder::moves(unsigned thread, Move move, std::uintptr_t address, std::size_t bytes) {
  for_each_row(address, bytes, [&](std::size_t tensor, std::size_t row, const Extent& of_row) {
    WarpStep& now = step(thread);
    WarpStep::Moved& moved = now.moved[{tensor, move}];
    moved.of_row.add(of_row);
    if (std::exchange(last_[tensor][static_cast<int>(move)][row], now.number) != now.number) moved.rows.push_back(row);
  });
}

void WalkRecorder::accessed(const MemoryAccess& a) {
  if (a.space == MemoryAccess::global)
    moves(a.thread, writes(a.access) ? Move::written : Move::read, a.address, a.size);
  if (a.space != MemoryAccess::shared) return;
  const std::size_t offset = own_offset(a.offset);
  if (offset == SharedMemory::no_offset) return;
  if (reads(a.access)) reads_shared(a.thread, offset, a.size);
  if (writes(a.access)) writes_shared(a.thread, offset, a.size);
}

void WalkRecorder::ldmatrix_row(const MemoryAccess& row) {
  if (row.space == MemoryAccess::shared) reads_shared(row.thread, own_offset(row.offset), row.size);
}

void WalkRecorder::copy_starts(const Copy& copy, const PendingCopies&) {
  if (copy.source_bytes > 0)
    moves(copy.thread, Move::started, reinterpret_cast<std::uintptr_t>(copy.global), copy.source_bytes);
}

void WalkRecorder::copy_lands(const Copy& copy, const PendingCopies&) {
  if (copy.source_bytes > 0)
    moves(worker->current().number, Move::landed, reinterpret_cast<std::uintptr_t>(copy.global), copy.source_bytes);
}

// Of a sum: instead of what this thread gave before in this step.
void WalkRecorder::watched(const WatchedValue& value) {
  const unsigned thread = worker->current().number;
  const std::pair place(value.row, value.column);
  const Shown shown = {value.value, thread, value.pc};
  if (value.is_share)
    step(thread).shares[value.name][place][thread] = shown;
  else
    show(step(thread).watched[value.name], place, shown);
}

void WalkRecorder::step_named(const NamedStep& named) {
  const auto [found, is_new] = names_.try_emplace(named.pc, current_.names.size());
  if (is_new) {
    const std::pair<std::string, std::string> name = {named.name, line_of(named.pc)};
    found->second = static_cast<std::size_t>(std::find(current_.names.begin(), current_.names.end(), name) -
                                             current_.names.begin());
    if (found->second == current_.names.size()) current_.names.push_back(name);
  }
  const unsigned thread = worker->current().number;
  const std::size_t name = found->second;
  if (goes_on(thread, [&](const WarpStep& step) { return step.is_marked && step.name == name; })) return;
  WarpStep& step = begins(thread / 32);
  step.is_marked = true;
  step.name = name;
}

void WalkRecorder::works(unsigned warp, std::size_t step, const Work& work) {
  now_.warps[warp].steps[step].work += work - before_;
  before_ = work;
}

// --- Shared memory ---

void WalkRecorder::mbarrier_made(const Mbarrier& mbarrier, const void*) {
  current_.mbarriers.resize(std::max<std::size_t>(current_.mbarriers.size(), mbarrier.index + 1));
  current_.mbarriers[mbarrier.index] = text(mbarrier.made());
}

unsigned WalkRecorder::place_of(const BulkCopy& copy, std::size_t offset) {
  const auto [found, is_new] = places_.try_emplace({offset, copy.bytes}, static_cast<unsigned>(places_.size()));
  if (is_new) current_.places.push_back(found->first);
  return found->second;
}

// Of a multicast the step says what comes to its own block; others' phases say where their rows come from.
void WalkRecorder::bulk_load_starts(const BulkCopy& copy, const Mbarrier& mbarrier) {
  if (copy.kind == BulkCopy::remote) return;
  OfBlock& block = of(*copy.block);
  const std::size_t offset = shared_offset(copy.shared, *copy.block);
  const unsigned place = place_of(copy, offset);
  const int gate = gate_of(mbarrier);
  const std::size_t begin = offset / 16, end = begin + static_cast<std::size_t>(copy.bytes) / 16;
  block.chunks.resize(std::max(block.chunks.size(), end));
  for (std::size_t i = begin; i < end; ++i) block.chunks[i] = {place};
  auto of = Chunk::none;
  copy.for_each_piece([&](const char* shared, const char* global, int bytes) {
    if (global == nullptr) return;
    const auto address = reinterpret_cast<std::uintptr_t>(global);
    if (!copy.repeated) moves(copy.thread, Move::started, address, static_cast<std::size_t>(bytes));
    for_each_row(address, static_cast<std::size_t>(bytes),
                 [&](std::size_t tensor, std::size_t row, const Extent& of_row) {
                   of = static_cast<std::uint32_t>(tensor);
                   block.chunks[begin + static_cast<std::size_t>(shared - copy.shared) / 16].row =
                       static_cast<std::uint32_t>(row);
                   if (copy.block == worker) {
                     WarpStep::Fill& fill = step(copy.thread).fills[{place, tensor}];
                     fill.gate = gate;
                     fill.phase = mbarrier.phase();
                     add(fill.rows, row);
                   }
                   WarpStep::Moved& copied = under_way(block, gate).copied[tensor];
                   add(copied.rows, row);
                   copied.of_row.add(of_row);
                 });
  });
  for (std::size_t i = begin; i < end; ++i) block.chunks[i].tensor = of;
}

void WalkRecorder::bulk_store_starts(const BulkCopy& copy) {
  const std::size_t offset = shared_offset(copy.shared, *copy.block);
  copy.for_each_piece([&](char*, const char* global, int bytes) {
    if (global != nullptr)
      moves(copy.thread, Move::written, reinterpret_cast<std::uintptr_t>(global), static_cast<std::size_t>(bytes));
  });
  if (offset / 16 < now_.chunks.size() && now_.chunks[offset / 16].place != Chunk::none)
    step(copy.thread).sends.insert(now_.chunks[offset / 16].place);
}

void WalkRecorder::reads_shared(unsigned thread, std::size_t offset, std::size_t size) {
  for (std::size_t i = offset / 16; i < std::min((offset + size + 15) / 16, now_.chunks.size()); ++i)
    if (const Chunk& chunk = now_.chunks[i]; chunk.tensor != Chunk::none) {
      RowList& rows = step(thread).uses[{chunk.place, chunk.tensor}];
      if (chunk.row != Chunk::none) add(rows, chunk.row);
    }
}

void WalkRecorder::writes_shared(unsigned thread, std::size_t offset, std::size_t size) {
  for (std::size_t i = offset / 16; i < std::min((offset + size + 15) / 16, now_.chunks.size()); ++i)
    if (now_.chunks[i].place != Chunk::none) {
      step(thread).writes.insert(now_.chunks[i].place);
      now_.chunks[i].tensor = Chunk::none;
    }
}

std::pair<std::uint32_t, RowList> WalkRecorder::rows_at(const std::vector<std::size_t>& offsets) const {
  std::pair<std::uint32_t, RowList> found = {Chunk::none, {}};
  for (const std::size_t offset : offsets) {
    if (offset / 16 >= now_.chunks.size() || now_.chunks[offset / 16].row == Chunk::none) continue;
    const Chunk& chunk = now_.chunks[offset / 16];
    if (chunk.tensor == Chunk::none) continue;
    found.first = chunk.tensor;
    add(found.second, chunk.row);
  }
  return found;
}

void WalkRecorder::product_starts(const Product& product) {
  const unsigned thread = worker->current().number;
  auto [a, b] = operands_of(product);
  for (auto* operand : {&a, &b})
    for (std::size_t& offset : *operand) reads_shared(thread, offset = own_offset(offset), 16);
  const auto [a_tensor, a_rows] = rows_at(a);
  const auto [b_tensor, b_rows] = rows_at(b);
  if (a_rows.empty() || b_rows.empty()) return;
  auto& [a_so_far, b_so_far] = step(thread).products[{a_tensor, b_tensor}];
  a_so_far.insert(a_so_far.end(), a_rows.begin(), a_rows.end());
  b_so_far.insert(b_so_far.end(), b_rows.begin(), b_rows.end());
}

// --- Waits ---

Phase& WalkRecorder::under_way(OfBlock& block, int gate) {
  std::vector<Phase>& phases = block.gates[gate];
  if (phases.empty()) phases.emplace_back();
  return phases.back();
}

WalkRecorder::OfBlock& WalkRecorder::of(const Worker& block) {
  return &block == worker ? now_ : pausing_[block.rank()];
}

void WalkRecorder::take_turns() { std::swap(now_, pausing_[worker->rank()]); }

void WalkRecorder::arrived(const Awaited& at, bool waits) {
  if (at.orders == Orders::phase && &static_cast<const Mbarrier&>(at).block != worker) return;
  const unsigned thread = worker->current().number;
  const int gate = gate_of(at);
  under_way(now_, gate).arrivals.insert({now_.so_far.barriers, thread / 32, now_.step_of[thread]});
  now_.arrived_at[thread] = static_cast<unsigned>(now_.gates[gate].size()) - 1;
  if (!waits) step(thread).arrives.insert(gate);
}

void WalkRecorder::phase_completes(const Mbarrier& mbarrier) { completes(of(mbarrier.block), gate_of(mbarrier)); }

void WalkRecorder::released(Orders orders, const Awaited* what, const ThreadSet& threads, const Worker& block) {
  if (orders == Orders::block) return all_meet(text(static_cast<const BlockBarrier*>(what)->site));
  if (orders == Orders::arrivals) return completes(now_, gate_of(*what));
  if (orders != Orders::nothing && orders != Orders::lanes) return;
  const Lanes lanes = block.lanes(threads);
  for (unsigned warp = 0; warp < max_warps; ++warp)
    if (lanes[warp] != 0) meet(warp, lanes[warp]);
}

void WalkRecorder::waited_at(const NamedBarrier& barrier, const Wait& wait) {
  const unsigned thread = worker->current().number;
  resumes(thread, gate_of(barrier), now_.arrived_at[thread], wait.site);
}

void WalkRecorder::waited_for(const Mbarrier& mbarrier, unsigned phase, const Wait& wait) {
  resumes(worker->current().number, gate_of(mbarrier), phase, wait.site);
}

void WalkRecorder::completes(OfBlock& block, int gate) {
  under_way(block, gate);
  block.gates[gate].emplace_back();
}

void WalkRecorder::resumes(unsigned thread, int gate, unsigned phase, const Site& site) {
  WarpSteps& warp = now_.warps[thread / 32];
  if (goes_on(thread, [](const WarpStep& step) { return !step.is_marked; })) return;
  WarpStep& next = begins(thread / 32);
  next.gate = gate;
  next.phase = phase;
  next.line = text(site);
  warp.waits_at_mbarriers = warp.waits_at_mbarriers || gate >= 0;
}

bool WalkRecorder::goes_on(unsigned thread, const auto& is_next) {
  const std::vector<WarpStep>& steps = now_.warps[thread / 32].steps;
  const auto next =
      std::find_if(steps.begin() + static_cast<std::ptrdiff_t>(now_.step_of[thread]) + 1, steps.end(), is_next);
  now_.step_of[thread] = static_cast<std::size_t>(next - steps.begin());
  return next != steps.end();
}

WarpStep& WalkRecorder::begins(unsigned warp) {
  std::vector<WarpStep>& steps = now_.warps[warp].steps;
  WarpStep next;
  next.number = ++steps_;
  next.name = steps.back().name;
  return steps.emplace_back(std::move(next));
}

void WalkRecorder::meet(unsigned warp, unsigned lanes) {
  std::size_t last = 0;
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1)
    last = std::max(last, now_.step_of[warp * 32 + std::countr_zero(rest)]);
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) now_.step_of[warp * 32 + std::countr_zero(rest)] = last;
}

void WalkRecorder::all_meet(const std::string& line) {
  std::vector<Step> steps = steps_of(now_.warps, now_.gates, now_.so_far);
  // What ends there, ends every party's last step.
  std::set<std::pair<unsigned, unsigned>> ended;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    if (ended.insert(step->by.value_or(std::pair(0u, 0u))).second) step->until = line;
  std::move(steps.begin(), steps.end(), std::back_inserter(current_.blocks[now_.number].steps));
  ++now_.so_far.barriers;
  steps_begin();
}

}  // namespace simt
