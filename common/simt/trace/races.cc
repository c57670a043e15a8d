#include "simt/trace/races.h"

#include <utility>

#include "simt/engine/engine.h"
#include "simt/hopper/bulk_copy.h"
#include "simt/hopper/mbarrier.h"
#include "simt/hopper/wgmma.h"
#include "simt/trace/operands.h"

namespace simt {
namespace {

std::size_t shared_offset(const void* pointer) {
  return worker->shared().offset_of(reinterpret_cast<std::uintptr_t>(pointer));
}

}  // namespace

void RaceDetector::launch_begins(const Launch& launch) {
  shadow_.launch_begins(worker->shared().extent());
  async_.launch_begins(worker->shared().extent());
  written_before_.swap(written_);
  written_.clear();
  dependent_ = launch.dependent;
  parked_.clear();
}

void RaceDetector::block_begins() {
  after_kernel_before_.fill(dependent_ ? 0 : ~0u);
  shadow_.block_begins();
  async_.block_begins();
}

void RaceDetector::block_parked(const ParkedBlock& block) { parked_[&block] = {shadow_, async_, after_kernel_before_}; }

void RaceDetector::block_unparked(const ParkedBlock& block) {
  auto parked = parked_.extract(&block);
  shadow_ = std::move(parked.mapped().shadow);
  async_ = std::move(parked.mapped().async);
  after_kernel_before_ = parked.mapped().after_kernel_before;
}

void RaceDetector::accessed(const MemoryAccess& a) {
  if (a.space == MemoryAccess::global) return check_dependency(a.pc, a.address, a.size, writes(a.access));
  if (a.space == MemoryAccess::shared) return check_shared(a);
  check_own_variable(a);
}

void RaceDetector::check_shared(const MemoryAccess& a) {
  if (async_.used())
    if (const auto mistake = async_.access(a.offset, a.size, a.thread, writes(a.access), shadow_))
      report(*mistake, (writes(a.access) ? "write of " : "read of ") + std::to_string(a.size) + " bytes", a.pc);
  if (const auto mistake = shadow_.access(a.offset, a.size, a.thread, a.access, a.pc))
    report(*mistake, a.access, a.size, a.pc);
}

void RaceDetector::ldmatrix_row(const MemoryAccess& row) {
  if (row.space == MemoryAccess::shared) check_shared(row);
}

// The registers of a product under way lie among the variables of its threads.
void RaceDetector::check_own_variable(const MemoryAccess& a) {
  if (!worker->hopper().used) return;
  if (const Product* product = worker->hopper().products.owner(*worker, reinterpret_cast<const void*>(a.address)))
    worker->fail(cudaErrorLaunchFailure, &worker->current(), line_of(a.pc),
                 std::string(writes(a.access) ? "write" : "read") + " of an element of D of the wgmma at " +
                     line_of(product->pc) + ", before it was waited for");
}

void RaceDetector::misaligned(const MemoryAccess& a) {
  if (a.space == MemoryAccess::elsewhere) return;
  const std::string bytes = std::to_string(a.size);
  worker->fail(cudaErrorMisalignedAddress, &worker->current(), line_of(a.pc),
               "misaligned " + std::string(reads(a.access) ? "read" : "write") + ": the address of a " + bytes +
                   "-byte access is not a multiple of " + bytes);
}

void RaceDetector::copy_starts(const Copy& copy, const PendingCopies& owner) {
  check_dependency(copy.pc, reinterpret_cast<std::uintptr_t>(copy.global), copy.source_bytes, false);
  const std::size_t offset = shared_offset(copy.shared);
  if (offset == SharedMemory::no_offset) return;
  if (const auto mistake = shadow_.copy_starts(offset, copy.bytes, copy.thread, copy.pc, &owner))
    report(*mistake, Access::write, copy.bytes, copy.pc);
}

void RaceDetector::copy_lands(const Copy& copy, const PendingCopies& owner) {
  const std::size_t offset = shared_offset(copy.shared);
  if (offset == SharedMemory::no_offset) return;
  if (const auto mistake = shadow_.copy_lands(offset, copy.bytes, worker->current().number, copy.pc, &owner))
    report(*mistake, Access::write, copy.bytes, copy.pc);
}

void RaceDetector::released(Orders orders, const Awaited* what, const ThreadSet& threads) {
  if (orders == Orders::block) return shadow_.barrier();
  const Lanes lanes = worker->lanes(threads);
  for (unsigned warp = 0; warp < max_warps; ++warp) {
    if (lanes[warp] == 0) continue;
    if (orders == Orders::lanes) shadow_.syncwarp(warp, lanes[warp]);
    if (orders == Orders::kernel_before) after_kernel_before_[warp] |= lanes[warp];
  }
  if (orders == Orders::arrivals) shadow_.release(what, lanes);
  if (orders == Orders::phase) shadow_.learn(what, lanes);
}

void RaceDetector::arrived(const Awaited& at, bool) { shadow_.arrive(&at, worker->current().number); }

// What the kernel before wrote may not be there yet on a GPU, or be overwritten by it.
void RaceDetector::check_dependency(const void* pc, std::uintptr_t address, std::size_t size, bool writes) {
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

void RaceDetector::check_dependency(const BulkCopy& copy, bool writes) {
  copy.for_each_piece([&](char*, const char* global, int bytes) {
    if (global != nullptr)
      check_dependency(copy.pc, reinterpret_cast<std::uintptr_t>(global), static_cast<std::size_t>(bytes), writes);
  });
}

void RaceDetector::report(const Shadow::Mistake& mistake, Access access, std::size_t size, const void* pc) {
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

void RaceDetector::report(const AsyncShadow::Mistake& mistake, const std::string& what, const void* pc) {
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
void RaceDetector::report_first(const std::optional<AsyncShadow::Mistake>& asynchronous,
                                const std::optional<Shadow::Mistake>& mistake, const std::string& what, Access access,
                                std::size_t size, const void* pc) {
  if (asynchronous && (asynchronous->kind != AsyncShadow::Mistake::unfenced || !mistake))
    report(*asynchronous, what, pc);
  if (mistake) report(*mistake, access, size, pc);
}

void RaceDetector::bulk_load_starts(const BulkCopy& copy, const Mbarrier& mbarrier) {
  check_dependency(copy, false);
  const std::size_t offset = shared_offset(copy.shared);
  const auto size = static_cast<std::size_t>(copy.bytes);
  const auto asynchronous = async_.load_starts(offset, size, copy.thread, copy.pc, mbarrier, shadow_);
  report_first(asynchronous, shadow_.access(offset, size, copy.thread, Access::write, copy.pc),
               "bulk copy to " + std::to_string(size) + " bytes", Access::write, size, copy.pc);
}

void RaceDetector::bulk_load_lands(const BulkCopy& copy, const Mbarrier&) {
  const std::size_t offset = shared_offset(copy.shared);
  async_.load_lands(offset, static_cast<std::size_t>(copy.bytes), shadow_);
  shadow_.bulk_write(offset, static_cast<std::size_t>(copy.bytes), copy.pc);
}

void RaceDetector::bulk_store_starts(const BulkCopy& copy) {
  check_dependency(copy, true);
  const std::size_t offset = shared_offset(copy.shared);
  const auto size = static_cast<std::size_t>(copy.bytes);
  const auto asynchronous = async_.store_starts(offset, size, copy.thread, copy.pc, shadow_);
  report_first(asynchronous, shadow_.access(offset, size, copy.thread, Access::read, copy.pc),
               "bulk copy from " + std::to_string(size) + " bytes", Access::read, size, copy.pc);
}

void RaceDetector::bulk_store_ends(const BulkCopy& copy) {
  const std::size_t offset = shared_offset(copy.shared);
  const auto size = static_cast<std::size_t>(copy.bytes);
  async_.store_ends(offset, size);
  if (const auto mistake = shadow_.access(offset, size, copy.thread, Access::read, copy.pc))
    report(*mistake, Access::read, size, copy.pc);
}

void RaceDetector::mbarrier_made(const Mbarrier& mbarrier, const void* pc) {
  if (const auto mistake = shadow_.access(shared_offset(mbarrier.address), 8, mbarrier.maker, Access::write, pc))
    report(*mistake, Access::write, 8, pc);
}

void RaceDetector::mbarrier_used(const Mbarrier& mbarrier, const Wait& call) {
  const auto mistake = shadow_.check_read(shared_offset(mbarrier.address), 8, worker->current().number);
  if (mistake)
    worker->fail(cudaErrorLaunchFailure, &worker->current(), text(call.site),
                 std::string(call.name) + ": no barrier between this and what thread " +
                     text(index_of(mistake->other.thread, blockDim)) + " did at " + line_of(mistake->other.pc) +
                     " to the memory of " + mbarrier.name(*worker));
}

// One of several arrivals that a phase needs. Where nothing orders it after the end of the phase before, it could have
// counted there, in the place of one that had not come yet.
void RaceDetector::mbarrier_arrival(const Mbarrier& mbarrier, const Wait& call) {
  if (!shadow_.knows_the_last_phase(worker->current().number, mbarrier.index, mbarrier.phase()))
    worker->fail(cudaErrorLaunchFailure, &worker->current(), text(call.site),
                 std::string(call.name) + " counts in phase " + std::to_string(mbarrier.phase()) + " of " +
                     mbarrier.name(*worker) + ", and might have counted in the phase before: nobody has told this " +
                     "thread that that one was complete");
}

void RaceDetector::phase_completes(const Mbarrier& mbarrier) {
  shadow_.phase_completes(&mbarrier, mbarrier.index, mbarrier.phase());
}

void RaceDetector::proxy_fence() { shadow_.proxy_fence(worker->current().number); }

void RaceDetector::product_starts(const Product& product) {
  const unsigned thread = worker->current().number;
  const auto [a, b] = operands_of(product);
  for (const auto* operand : {&a, &b})
    for (const std::size_t offset : *operand) {
      const auto asynchronous = async_.product_starts(offset, thread, product.pc, shadow_);
      report_first(asynchronous, shadow_.check_read(offset, 16, thread), "read by wgmma", Access::read, 16, product.pc);
    }
}

void RaceDetector::product_ends(const Product& product) {
  const std::uint32_t event = shadow_.warp_event(product.warp);
  const auto [a, b] = operands_of(product);
  for (const auto* operand : {&a, &b})
    for (const std::size_t offset : *operand) async_.product_ends(offset, product.warp, event, shadow_);
}

}  // namespace simt
