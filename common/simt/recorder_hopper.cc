// What the recorder makes of bulk copies, mbarriers and wgmma.
#include <set>

#include "simt/bulk_copy.h"
#include "simt/engine.h"
#include "simt/mbarrier.h"
#include "simt/recorder.h"
#include "simt/wgmma.h"

namespace simt {

void Recorder::report(const AsyncShadow::Mistake& mistake, const std::string& what, const void* pc) {
  using Kind = AsyncShadow::Mistake;
  const std::string thread = "thread " + text(index_of(mistake.thread, blockDim)), at = " at " + line_of(mistake.pc);
  const std::string load = "shared memory that a bulk copy of " + thread + at + " fills";
  const std::string phase = mistake.mbarrier == nullptr
                                ? ""
                                : "phase " + std::to_string(mistake.phase) + " of " + mistake.mbarrier->name(*worker);
  std::string message;
  switch (mistake.kind) {
    case Kind::loading:
      message = what + " of " + load + ", before any thread has waited for " + phase + ", which completes it";
      break;
    case Kind::not_waited:
      message = what + " of " + load + ", by a thread that has not waited for " + phase + ", which completes it";
      break;
    case Kind::storing:
      message =
          what + " of shared memory that a bulk copy of " + thread + at + " reads, before that thread waited for it";
      break;
    case Kind::multiplying:
      message = what + " of shared memory that a wgmma of warp " + std::to_string(mistake.thread / 32) + at +
                " reads, before that warp waited for it";
      break;
    case Kind::released:
      message = "race on shared memory: no barrier between this " + what + " and the wgmma of warp " +
                std::to_string(mistake.thread / 32) + at + ", which has read it";
      break;
    case Kind::unfenced:
      message = what + " of shared memory that " + thread + " has written" + at +
                ", and no fence.proxy.async by that thread in between";
      break;
  }
  worker->fail(cudaErrorLaunchFailure, &worker->current(), line_of(pc), message);
}

// A missing barrier comes before a missing fence: without the one, the other cannot be seen to be there.
void Recorder::report_first(const std::optional<AsyncShadow::Mistake>& asynchronous,
                            const std::optional<Shadow::Mistake>& mistake, const std::string& what, Access access,
                            std::size_t size, const void* pc) {
  if (asynchronous && (asynchronous->kind != AsyncShadow::Mistake::unfenced || !mistake))
    report(*asynchronous, what, pc);
  if (mistake) report(*mistake, access, size, pc);
}

// The registers of a product under way lie among the variables of its threads.
void Recorder::own_variable(const void* pc, const void* address, Access access) {
  if (!worker->hopper().used) return;
  if (const Product* product = worker->hopper().products.owner(*worker, address))
    worker->fail(cudaErrorLaunchFailure, &worker->current(), line_of(pc),
                 std::string(writes(access) ? "write" : "read") + " of an element of D of the wgmma at " +
                     line_of(product->pc) + ", before it was waited for");
}

void Recorder::count(const BulkCopy& copy) {
  if (!counting_) return;
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
  site_of(copy.pc, op).counts += {.requests = 1,
                                  .bytes = static_cast<std::uint64_t>(copy.bytes),
                                  .units = sectors.size(),
                                  .ideal = (inside + 31) / 32,
                                  .lines = lines.size()};
  works();
}

void Recorder::bulk_load_starts(const BulkCopy& copy, const Mbarrier& mbarrier) {
  count(copy);
  copy.for_each_piece([&](char*, const char* from, int bytes) {
    if (from == nullptr) return;
    const auto address = reinterpret_cast<std::uintptr_t>(from);
    check_dependency(copy.pc, address, static_cast<std::size_t>(bytes), false);
  });
  const std::size_t offset = shared_offset(reinterpret_cast<std::uintptr_t>(copy.shared));
  if (walk_ != nullptr) walk_->fills(copy, offset, mbarrier);
  const auto size = static_cast<std::size_t>(copy.bytes);
  const auto asynchronous = async_.load_starts(offset, size, copy.thread, copy.pc, mbarrier, shadow_);
  report_first(asynchronous, shadow_.access(offset, size, copy.thread, Access::write, copy.pc),
               "bulk copy to " + std::to_string(size) + " bytes", Access::write, size, copy.pc);
}

void Recorder::bulk_load_lands(const BulkCopy& copy, const Mbarrier&) {
  const std::size_t offset = shared_offset(reinterpret_cast<std::uintptr_t>(copy.shared));
  async_.load_lands(offset, static_cast<std::size_t>(copy.bytes), shadow_);
  shadow_.bulk_write(offset, static_cast<std::size_t>(copy.bytes), copy.pc);
}

void Recorder::bulk_store_starts(const BulkCopy& copy) {
  count(copy);
  copy.for_each_piece([&](char*, const char* to, int bytes) {
    if (to == nullptr) return;
    const auto address = reinterpret_cast<std::uintptr_t>(to);
    check_dependency(copy.pc, address, static_cast<std::size_t>(bytes), true);
  });
  const std::size_t offset = shared_offset(reinterpret_cast<std::uintptr_t>(copy.shared));
  if (walk_ != nullptr) walk_->sends(copy, offset);
  const auto size = static_cast<std::size_t>(copy.bytes);
  const auto asynchronous = async_.store_starts(offset, size, copy.thread, copy.pc, shadow_);
  report_first(asynchronous, shadow_.access(offset, size, copy.thread, Access::read, copy.pc),
               "bulk copy from " + std::to_string(size) + " bytes", Access::read, size, copy.pc);
}

void Recorder::bulk_store_ends(const BulkCopy& copy) {
  const std::size_t offset = shared_offset(reinterpret_cast<std::uintptr_t>(copy.shared));
  const auto size = static_cast<std::size_t>(copy.bytes);
  async_.store_ends(offset, size);
  if (const auto mistake = shadow_.access(offset, size, copy.thread, Access::read, copy.pc))
    report(*mistake, Access::read, size, copy.pc);
}

void Recorder::mbarrier_made(const Mbarrier& mbarrier, const void* pc) {
  if (walk_ != nullptr) walk_->made(mbarrier);
  const std::size_t offset = shared_offset(reinterpret_cast<std::uintptr_t>(mbarrier.address));
  if (const auto mistake = shadow_.access(offset, 8, mbarrier.maker, Access::write, pc))
    report(*mistake, Access::write, 8, pc);
}

void Recorder::mbarrier_used(const Mbarrier& mbarrier, const Wait& call) {
  const std::size_t offset = shared_offset(reinterpret_cast<std::uintptr_t>(mbarrier.address));
  const auto mistake = shadow_.check_read(offset, 8, worker->current().number);
  if (mistake)
    worker->fail(cudaErrorLaunchFailure, &worker->current(), text(call.site),
                 std::string(call.name) + ": no barrier between this and what thread " +
                     text(index_of(mistake->other.thread, blockDim)) + " did at " + line_of(mistake->other.pc) +
                     " to the memory of " + mbarrier.name(*worker));
}

// One of several arrivals that a phase needs. Where nothing orders it after the end of the phase before, it could have
// counted there, in the place of one that had not come yet.
void Recorder::mbarrier_arrival(const Mbarrier& mbarrier, const Wait& call) {
  if (!shadow_.knows_the_last_phase(worker->current().number, mbarrier.index, mbarrier.phase()))
    worker->fail(cudaErrorLaunchFailure, &worker->current(), text(call.site),
                 std::string(call.name) + " counts in phase " + std::to_string(mbarrier.phase()) + " of " +
                     mbarrier.name(*worker) + ", and might have counted in the phase before: nobody has told this " +
                     "thread that that one was complete");
}

void Recorder::phase_completes(const Mbarrier* mbarrier) {
  shadow_.phase_completes(mbarrier, mbarrier->index, mbarrier->phase());
  if (walk_ != nullptr) walk_->completes(gate_of(*mbarrier));
}

void Recorder::waited(const Mbarrier& mbarrier, unsigned phase, const Wait& wait) {
  if (walk_ != nullptr) walk_->waited(worker->current().number, gate_of(mbarrier), phase, wait.site);
}

void Recorder::proxy_fence() { shadow_.proxy_fence(worker->current().number); }

std::vector<std::size_t> Recorder::chunks_of(const MatrixInShared& matrix, int first, int rows) const {
  std::vector<std::size_t> offsets;
  matrix.for_each_chunk(first, rows, [&](std::uint32_t address, int, int) {
    offsets.push_back(shared_offset(reinterpret_cast<std::uintptr_t>(worker->shared().at(address))));
  });
  return offsets;
}

Recorder::Operands Recorder::operands_of(const Product& product) const {
  const int warp = static_cast<int>(product.warp % 4);
  return {product.form.a_in_registers ? std::vector<std::size_t>() : chunks_of(product.form.a, warp * 16, 16),
          chunks_of(product.form.b, 0, product.form.columns)};
}

void Recorder::product_starts(const Product& product) {
  const auto columns = static_cast<std::uint64_t>(product.form.columns);
  current_.matrix_flops += 2 * 16 * columns * 16;
  if (counting_) {
    const std::uint64_t bytes = (product.form.a_in_registers ? 0 : 16 * 32) + columns * 32 / 4;
    site_of(product.pc, Op::wgmma).counts +=
        {.requests = 1, .bytes = bytes, .units = bytes / 128, .ideal = bytes / 128};
    shared_bytes_ += bytes;
  }
  works();
  const unsigned thread = worker->current().number;
  const auto [a, b] = operands_of(product);
  for (const auto* operand : {&a, &b})
    for (const std::size_t offset : *operand) {
      const auto asynchronous = async_.product_starts(offset, thread, product.pc, shadow_);
      report_first(asynchronous, shadow_.check_read(offset, 16, thread), "read by wgmma", Access::read, 16, product.pc);
    }
  if (walk_ != nullptr) walk_->multiplies(thread, a, b);
}

void Recorder::product_ends(const Product& product) {
  const std::uint32_t event = shadow_.warp_event(product.warp);
  const auto [a, b] = operands_of(product);
  for (const auto* operand : {&a, &b})
    for (const std::size_t offset : *operand) async_.product_ends(offset, product.warp, event, shadow_);
}

}  // namespace simt
