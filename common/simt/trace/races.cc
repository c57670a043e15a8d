#include "simt/trace/races.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "simt/cuda/host_checks.h"
#include "simt/engine/device_memory.h"
#include "simt/engine/engine.h"
#include "simt/engine/findings.h"
#include "simt/engine/host_ranges.h"
#include "simt/engine/kernel_heap.h"
#include "simt/engine/modules.h"
#include "simt/hopper/bulk_copy.h"
#include "simt/hopper/mbarrier.h"
#include "simt/hopper/wgmma.h"
#include "simt/trace/host_objects.h"
#include "simt/trace/operands.h"

namespace simt {
namespace {

std::size_t offset_in_shared(const void* pointer) { return worker->shared_offset(pointer); }
// Of a pointer of that block's own.
std::size_t offset_in_shared(const void* pointer, const Worker& block) {
  const std::size_t offset = block.shared().offset_of(reinterpret_cast<std::uintptr_t>(pointer));
  return offset == SharedMemory::no_offset ? offset : block.rank() * block.shared_bytes_of_each() + offset;
}

const char* access_word(Access access) {
  return is_atomic(access) ? "atomic access" : writes(access) ? "write" : "read";
}

// The shadow numbers all threads of a cluster.
unsigned in_cluster(unsigned thread) { return worker->rank() * max_block_threads + thread; }
unsigned in_cluster(const BulkCopy& copy) { return copy.rank * max_block_threads + copy.thread; }
unsigned this_thread() { return in_cluster(worker->current().number); }

// "thread (1, 0, 0)", if need be "of block (0, 0, 0)".
std::string thread_text(unsigned thread) {
  const unsigned rank = thread / max_block_threads;
  return "thread " + text(index_of(thread % max_block_threads, blockDim)) +
         (rank == worker->rank() ? "" : " of block " + text(worker->cluster()[rank]->index()));
}

}  // namespace

void RaceDetector::launch_begins(const Launch& launch) {
  allocations_ = {};
  looks_.clear();
  undefined_at_.clear();
  stored_last_ = {};
  stored_ = {};
  object_ = 0;
  if (global_) global_->launch_begins();
  const unsigned threads = launch.block.x * launch.block.y * launch.block.z, blocks = launch.cluster_blocks();
  shadow_.launch_begins(worker->shared_bytes_of_each(), blocks, (threads + 31) / 32);
  async_.launch_begins(worker->shared_bytes_of_each(), blocks);
  pausing_.assign(blocks, {});
  written_before_.swap(written_);
  written_.clear();
  dependent_ = launch.dependent;
  parked_.clear();
}

void RaceDetector::launch_ends() {
  settle();
  if (global_) global_->launch_ends();
  unchanged_.launch_ends();
}

void RaceDetector::block_ends() {
  if (const auto event = shadow_.may_still_be_reached(worker->rank()))
    worker->fail(cudaErrorLaunchFailure, nullptr, "",
                 "the block has ended, and nothing says that it waits for what " + thread_text(event->thread) +
                     " does to its shared memory at " + line_of(event->pc) +
                     ": a block has to stay until the others have done with its shared memory (barrier.cluster)");
  if (!global_) return;
  settle();
  settle_looks();
  worker->fail_if_suspected();
}

void RaceDetector::block_begins() {
  if (global_) global_->block_begins(worker->block_number());
  after_kernel_before_.resize(worker->cluster().size());
  after_kernel_before_[worker->rank()].fill(dependent_ ? 0 : ~0u);
  if (worker->rank() != 0) return;
  shadow_.block_begins();
  async_.block_begins();
}

void RaceDetector::block_pauses() {
  settle();
  if (global_) pausing_[worker->rank()] = global_->park();
}

void RaceDetector::block_goes_on() {
  if (global_) global_->unpark(pausing_[worker->rank()]);
}

void RaceDetector::block_parked(const ParkedBlock& block) {
  parked_[&block] = {shadow_, async_, after_kernel_before_, global_ ? global_->park() : GlobalShadow::Parked()};
}

void RaceDetector::block_unparked(const ParkedBlock& block) {
  auto parked = parked_.extract(&block);
  shadow_ = std::move(parked.mapped().shadow);
  async_ = std::move(parked.mapped().async);
  after_kernel_before_ = parked.mapped().after_kernel_before;
  if (global_) global_->unpark(parked.mapped().global);
}

// What was stored before this event is known now.
void RaceDetector::settle() {
  if (!global_) return;
  global_->settle();
  if (stored_last_.size != 0) check_stored_last();
  if (stored_.now.size != 0) settle_stored();
}

void RaceDetector::settle_stored() {
  const MemoryAccess now = std::exchange(stored_.now, {});
  const auto mistake = std::exchange(stored_.mistake, std::nullopt);
  const bool same = std::memcmp(stored_.old.data(), reinterpret_cast<const void*>(now.address), now.size) == 0;
  if (!same && shadow_.changed(now.offset, now.size)) unchanged_.changes(now.pc);
  if (!mistake) return;
  if (!same) {
    unchanged_.forget(worker->launch().kernel);
    worker->fail_of(now.thread, line_of(now.pc), message_of(*mistake, now.access, now.size, in_cluster(now.thread)));
  }
  if (mistake->other.access == Access::read) return unchanged(*mistake, now);
  if (same_.insert(now.pc).second)
    noted("kernel " + kernel_name(worker->launch().kernel) + ", at " + line_of(now.pc) +
          ": several threads store the same value to the same shared memory, which does no harm");
}

// A race, if the store were not one of what was there.
void RaceDetector::unchanged(const Shadow::Mistake& mistake, const MemoryAccess& now) {
  const auto [store, read] =
      writes(now.access) ? std::pair(now.pc, mistake.other.pc) : std::pair(mistake.other.pc, now.pc);
  const void* const kernel = worker->launch().kernel;
  unchanged_.beside(store, read, kernel, [&] {
    return "kernel " + kernel_name(kernel) + ", block " + text(blockIdx) + ", thread " +
           text(index_of(now.thread, blockDim)) + ", at " + line_of(now.pc) + ": " +
           message_of(mistake, now.access, now.size, in_cluster(now.thread));
  });
}

void RaceDetector::settle_looks() {
  for (const auto& [read, look] : std::exchange(looks_, {})) {
    if (!before_updates_.contains(read)) worker->fail_of(look.thread, line_of(look.pc), look.message);
    noted("kernel " + kernel_name(worker->launch().kernel) + ", at " + line_of(look.pc) + ": " + look.message +
          ": the read may be of an old value");
  }
}

void RaceDetector::accessed(const MemoryAccess& a) {
  settle();
  if (global_) {
    worker->fail_if_overdue_at(a.pc);
    check_shared_bounds(a);
    check_variable_bounds(a);
  }
  if (global_ && HostObjects::any()) check_table(a);
  if (global_ && (is_atomic(a.access) || a.is_volatile) && a.space != MemoryAccess::elsewhere) {
    const auto* flag = reinterpret_cast<const void*>(a.address);
    if (reads(a.access)) shadow_.flag_read(flag, in_cluster(a.thread));
    if (writes(a.access)) shadow_.flag_written(flag, in_cluster(a.thread));
  }
  if (!undefined_at_.empty() && writes(a.access) && a.space != MemoryAccess::elsewhere) stored_last_ = a;
  if (a.space == MemoryAccess::global) {
    check_bounds(a);
    if (global_) return global_->access(a, shadow_);  // none of its launches are dependent
    return check_dependency(a.pc, a.address, a.size, writes(a.access));
  }
  if (a.space == MemoryAccess::shared) return check_shared(a);
  if (global_) check_constant(a), check_host_memory(a);
  check_own_variable(a);
}

// What traced kernels have to be told: their allocations begin where a GPU's do, and so need not end at a page's end.
void RaceDetector::check_bounds(const MemoryAccess& a) {
  for (const Allocation& one : allocations_)
    if (a.address >= one.begin && a.address + a.size <= one.end) return;
  DeviceMemory& memory = DeviceMemory::instance();
  if (!memory.contains(reinterpret_cast<const void*>(a.address))) return;  // a device variable
  KernelHeap& heap = KernelHeap::instance();
  Allocation in;
  if (heap.has(a.address)) {
    if (const auto block = heap.block_at(a.address)) in = {block->first, block->second};
  } else if (const auto block = memory.live_block_at(a.address)) {
    in = {block->start, block->start + block->bytes};
  }
  if (in.end != 0 && a.address + a.size <= in.end) {
    allocations_[oldest_allocation_++ % allocations_.size()] = in;
    return;
  }
  const std::uintptr_t first = std::max(a.address, in.end);
  worker->fail(cudaErrorIllegalAddress, &worker->current(), line_of(a.pc),
               std::string("invalid ") + access_word(a.access) + " " +
                   (heap.has(first) ? heap.where(first) : memory.where(reinterpret_cast<const void*>(first))));
}

// Of the engine's own templates, which have the arguments of a launch; or of the C++ library's, of which the engine may
// use the instances that the linker found in the program, and CUDA has none in kernels.
static bool is_a_launch(const std::string& name) {
  for (const char* space : {"_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx"})
    if (name.starts_with(space)) return true;
  for (const char* part : {"N4simt4Body", "4simt10Configured", "4simt7Deduced", "4simt6CallOf", "4simt9call_with"})
    if (name.find(part) != std::string::npos) return true;
  return name.starts_with("_ZN4simt");
}

bool RaceDetector::from_the_kernel(const void* pc) {
  const auto [from, is_new] = from_kernel_.try_emplace(pc, true);
  if (is_new) {
    const Module* const module = module_at(pc);
    const Function* const function =
        module != nullptr ? module->function_at(reinterpret_cast<std::uintptr_t>(pc)) : nullptr;
    from->second = function != nullptr && !is_a_launch(function->name);
  }
  return from->second;
}

// Between static shared variables are gaps, so that an access beside one is told from an access to the next.
void RaceDetector::check_shared_bounds(const MemoryAccess& a) {
  if (!worker->shared().leaves(a.address, a.size) || !from_the_kernel(a.pc)) return;
  std::uintptr_t first = a.address;  // that lies outside
  while (first < a.address + a.size - 1 && !worker->shared().leaves(first, 1)) ++first;
  worker->fail(cudaErrorIllegalAddress, &worker->current(), line_of(a.pc),
               std::string("invalid ") + access_word(a.access) + " " +
                   worker->shared().where(reinterpret_cast<const void*>(first)));
}

// Of the user's own, by its mangled name: not of the engine, or of a library's headers; and of functions main() alone,
// because the variables of others may be the device's.
static bool is_of_the_host(const std::string& name) {
  if (name.starts_with("_ZZ")) return name.starts_with("_ZZ4mainE");
  if (name.starts_with("_ZG") || name.starts_with("_ZT") || name.find('@') != std::string::npos) return false;
  for (const char* space : {"4simt", "St", "9__gnu_cxx", "6thrust", "3cub", "4cuda", "18cooperative_groups"})
    if (name.starts_with(std::string("_ZN") + space) || name.starts_with(std::string("_ZNK") + space)) return false;
  return true;
}

// The variables of the device and those of the host lie beside each other, with guards before those of the device.
void RaceDetector::check_variable_bounds(const MemoryAccess& a) {
  const Module* const module = worker->launch().module;
  if (module == nullptr || !module->in_data(a.address)) return;
  const DeviceVariable* variable = DeviceVariable::at(reinterpret_cast<const void*>(a.address));
  if (variable != nullptr &&
      a.address + a.size <= reinterpret_cast<std::uintptr_t>(variable->begin()) + variable->bytes()) {
    if (!variable->use().by_kernels && from_the_kernel(a.pc)) kernel_uses(*variable);
    if (writes(a.access) && variable->kind() == DeviceVariable::constant && !variable->given() && from_the_kernel(a.pc))
      worker->fail(
          cudaErrorIllegalAddress, &worker->current(), line_of(a.pc),
          std::string("invalid ") + access_word(a.access) + " of a __constant__ variable" +
              (module->object_at(a.address) != nullptr ? ", " + Module::name_of(module->object_at(a.address)->name)
                                                       : std::string()) +
              ": kernels can only read it");
    return;
  }
  if (!from_the_kernel(a.pc)) return;
  const Object* const object = variable == nullptr ? module->object_at(a.address) : nullptr;
  if (object != nullptr) {
    if (is_of_the_host(object->name))
      host_memory_accessed(a, ("its variable " + Module::name_of(object->name)).c_str());
    return;
  }
  if (variable == nullptr) variable = DeviceVariable::beside(reinterpret_cast<const void*>(a.address));
  if (variable == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(variable->begin()), end = begin + variable->bytes();
  const std::uintptr_t first = a.address < begin ? a.address : std::max(a.address, end);
  const Object* const named = module->object_at(begin);
  const std::string name = std::string(" of the ") +
                           (variable->kind() == DeviceVariable::constant ? "constant variable" : "device variable") +
                           (named != nullptr ? " " + Module::name_of(named->name) : "") + " (" +
                           std::to_string(variable->bytes()) + " bytes)";
  worker->fail(cudaErrorIllegalAddress, &worker->current(), line_of(a.pc),
               std::string("invalid ") + access_word(a.access) + " " +
                   (first < begin ? std::to_string(begin - first) + " bytes before the start"
                                  : "at byte " + std::to_string(first - begin) + ", " + std::to_string(first - end) +
                                        " bytes past the end") +
                   name);
}

void RaceDetector::fence(bool of_block) {
  if (!global_) return;
  shadow_.fence(this_thread());
  if (!of_block) global_->fence(worker->current().number);
}

void RaceDetector::check_shared(const MemoryAccess& a) {
  if (const auto cluster = worker->cluster(); cluster.size() > 1) {
    const Worker& block = *cluster[a.offset / worker->shared_bytes_of_each()];
    if (&block != worker) check_reach(block, a.access, a.pc, writes(a.access) ? "write" : "read", {});
  }
  const unsigned thread = in_cluster(a.thread);
  if (async_.used())
    if (const auto mistake = async_.access(a.offset, a.size, thread, writes(a.access), shadow_))
      report(*mistake, (writes(a.access) ? "write of " : "read of ") + std::to_string(a.size) + " bytes", a.pc);
  if (global_ && is_atomic(a.access))
    if (const void* const read = shadow_.read_by(thread, a.offset)) before_updates_.insert(read);
  const bool stores = global_ && a.access == Access::write && a.size <= stored_.old.size();
  const auto mistake = shadow_.access(a.offset, a.size, thread, a.access, a.pc, global_ && a.is_volatile, stores);
  if (stores) {
    stored_.now = a;
    std::memcpy(stored_.old.data(), reinterpret_cast<const void*>(a.address), a.size);
  }
  if (!mistake) return;
  if (global_ && mistake->kind == Shadow::Mistake::race) {
    const bool reads_now = a.access == Access::read;
    if (reads_now ? is_atomic(mistake->other.access) : is_atomic(a.access) && mistake->other.access == Access::read) {
      const void* const read = reads_now ? a.pc : mistake->other.pc;
      if (!looks_.contains(read)) looks_[read] = {a.thread, a.pc, message_of(*mistake, a.access, a.size, thread)};
      return;
    }
  }
  if (mistake->kind == Shadow::Mistake::race && stores && !is_atomic(mistake->other.access)) {
    stored_.mistake = mistake;
    return;
  }
  if (mistake->kind == Shadow::Mistake::race && a.access == Access::read && mistake->other.is_unchanged)
    return unchanged(*mistake, a);
  if (!global_ || mistake->kind != Shadow::Mistake::uninitialised) return report(*mistake, a.access, a.size, a.pc);
  if (a.access == Access::read && shadow_.some_written(a.offset, a.size)) return;
  // If a thread writes it before the next barrier, that is a race, and the shadow will say so.
  if (!worker->suspected()) worker->suspect(line_of(a.pc), message_of(*mistake, a.access, a.size, thread));
}

// Something that the current thread does to the shared memory of another block of its cluster.
void RaceDetector::check_reach(const Worker& block, Access access, const void* pc, const std::string& what,
                               const Site& site) {
  const auto wrong = [&](const std::string& why) {
    worker->fail(cudaErrorLaunchFailure, &worker->current(), site.line != 0 ? text(site) : line_of(pc),
                 what + " of the shared memory of block " + text(block.index()) + " of the cluster, " + why);
  };
  if (block.has_ended())
    wrong(
        "which has returned: a block has to stay until the others have done with its shared memory (barrier.cluster)");
  if (!shadow_.reaches(block.rank(), this_thread(), pc, access))
    wrong("of which this thread does not know that it has started: that takes a barrier.cluster");
}

void RaceDetector::reached(const Worker& block, const char* name, const Site& site) {
  check_reach(block, Access::write, site.return_address, name + std::string(": use"), site);
}

void RaceDetector::ldmatrix_row(const MemoryAccess& row) {
  if (row.space == MemoryAccess::shared) check_shared(row);
}

// A virtual call reads the address of the table from the object, and then an entry of the table.
void RaceDetector::check_table(const MemoryAccess& a) {
  if (writes(a.access)) return HostObjects::instance().forget(reinterpret_cast<const void*>(a.address), a.size);
  if (object_ != 0 && HostObjects::is_in_table(a.address, reinterpret_cast<const void*>(object_)) &&
      from_the_kernel(a.pc))
    worker->fail(
        cudaErrorIllegalAddress, &worker->current(), line_of(a.pc),
        "a virtual call for an object that host code has made: its table of functions is the host's; only what "
        "a kernel has made can be called so in kernels");
  object_ = a.size == sizeof(void*) && HostObjects::instance().has(a.address) ? a.address : 0;
}

void RaceDetector::read_only(const MemoryAccess& a) {
  if (a.space == MemoryAccess::shared)
    worker->fail(cudaErrorIllegalAddress, &worker->current(), line_of(a.pc),
                 "invalid read of shared memory: __ldg() reads global memory");
  if (global_ && a.space == MemoryAccess::global) global_->read_only(a);
}

void RaceDetector::undefined_shuffle(const Wait& wait) {
  undefined_at_ = std::string(wait.name) + " at " + text(wait.site);
}

void RaceDetector::check_stored_last() {
  const MemoryAccess a = std::exchange(stored_last_, {});
  bool found = false;
  for (std::size_t i = 0; i + 4 <= a.size; i += 4) {
    std::uint32_t word;
    std::memcpy(&word, reinterpret_cast<const char*>(a.address) + i, sizeof word);
    constexpr std::uint32_t but_for_the_sign = 0x7fffffff;
    found = found || (word & but_for_the_sign) == (std::uint32_t(undefined_by_shuffle) & but_for_the_sign);
  }
  if (!found || !stored_undefined_.insert(a.pc).second) return;
  found_mistake("kernel " + kernel_name(worker->launch().kernel) + ", block " + text(blockIdx) + ", thread " +
                text(index_of(a.thread, blockDim)) + ", at " + line_of(a.pc) +
                ": it stores what follows from an undefined value: the " + undefined_at_ +
                " reads the value of a lane that is not at this shuffle");
}

// A copy in another stream may write it.
void RaceDetector::check_constant(const MemoryAccess& a) {
  const auto* const address = reinterpret_cast<const void*>(a.address);
  if (global_->streams().several() && DeviceVariable::may_have(address) && DeviceVariable::at(address) != nullptr)
    global_->access(a, shadow_);
}

// What lies neither in device memory nor in the thread's own: memory of the host, which a GPU does not reach. Host code
// that launches passes the arguments from there, however.
void RaceDetector::check_host_memory(const MemoryAccess& a) {
  if (worker->on_a_fiber(a.address)) {
    if (is_atomic(a.access) || !worker->on_its_fiber(a.address)) check_local_memory(a);
    return;
  }
  if (!from_the_kernel(a.pc)) return;
  const char* const kind = host_memory_at(a.address);
  if (kind != nullptr) host_memory_accessed(a, kind);
  if (host_checks::was_pinned(reinterpret_cast<const void*>(a.address)))
    worker->fail(cudaErrorIllegalAddress, &worker->current(), line_of(a.pc),
                 std::string("invalid ") + access_word(a.access) + " of pinned memory that was freed (cudaFreeHost)");
}

// A thread's own variables: on a GPU the same address is another one's for each thread.
void RaceDetector::check_local_memory(const MemoryAccess& a) {
  if (!from_the_kernel(a.pc)) return;
  worker->fail(cudaErrorIllegalAddress, &worker->current(), line_of(a.pc),
               std::string("invalid ") + access_word(a.access) + " of a variable of " +
                   (!worker->on_its_fiber(a.address)
                        ? "another thread's own: on a GPU its address is that of a variable of this thread's"
                        : "the thread's own: atomic functions have to do with global and with shared memory"));
}

void RaceDetector::host_memory_accessed(const MemoryAccess& a, const char* kind) {
  if (host_checks::kernel_touches(a.pc, reinterpret_cast<const void*>(a.address), a.size, writes(a.access)))
    return global_->access(a, shadow_);
  worker->fail(cudaErrorIllegalAddress, &worker->current(), line_of(a.pc),
               std::string("invalid ") + (writes(a.access) ? "write" : "read") + " of memory of the host (" + kind +
                   "): a kernel can only use what cudaMalloc() and the like have given");
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
               "misaligned " + std::string(access_word(a.access)) + ": the address of a " + bytes +
                   "-byte access is not a multiple of " + bytes);
}

// What a copy reads or writes of global memory.
void RaceDetector::copy_touches(const void* pc, const void* global, std::size_t bytes, unsigned thread, Access access) {
  MemoryAccess a = worker->memory_access(pc, global, bytes, access);
  a.thread = thread;
  check_bounds(a);
  if (global_) {
    check_variable_bounds(a);
    if (a.space == MemoryAccess::global)
      global_->access(a, shadow_);
    else
      check_host_memory(a);
  }
  check_dependency(pc, a.address, bytes, writes(access));
}

void RaceDetector::copy_starts(const Copy& copy, const PendingCopies& owner) {
  if (copy.source_bytes > 0) copy_touches(copy.pc, copy.global, copy.source_bytes, copy.thread, Access::read);
  if (global_) check_shared_bounds(worker->memory_access(copy.pc, copy.shared, copy.bytes, Access::write));
  const std::size_t offset = offset_in_shared(copy.shared);
  if (offset == SharedMemory::no_offset) return;
  if (const auto mistake = shadow_.copy_starts(offset, copy.bytes, in_cluster(copy.thread), copy.pc, &owner))
    report(*mistake, Access::write, copy.bytes, copy.pc);
}

void RaceDetector::copy_lands(const Copy& copy, const PendingCopies& owner) {
  const std::size_t offset = offset_in_shared(copy.shared);
  if (offset == SharedMemory::no_offset) return;
  if (owner.ordered_elsewhere) return shadow_.copy_ends(offset, copy.bytes, &owner);
  if (const auto mistake = shadow_.copy_lands(offset, copy.bytes, this_thread(), copy.pc, &owner))
    report(*mistake, Access::write, copy.bytes, copy.pc);
}

void RaceDetector::released(Orders orders, const Awaited* what, const ThreadSet& threads, const Worker& block) {
  settle();
  if (orders == Orders::block) {
    if (global_) {
      settle_looks();
      worker->fail_if_suspected();
      worker->at_grid_barrier(what) ? global_->grid_barrier() : global_->barrier();
    }
    return shadow_.barrier(block.rank());
  }
  const Lanes lanes = block.lanes(threads);
  for (unsigned warp = 0; warp < max_warps; ++warp) {
    if (lanes[warp] == 0) continue;
    if (orders == Orders::lanes) shadow_.syncwarp(block.rank() * max_warps + warp, lanes[warp]);
    if (orders == Orders::kernel_before) after_kernel_before_[block.rank()][warp] |= lanes[warp];
  }
  if (orders == Orders::arrivals) shadow_.release(what, block.rank(), lanes);
  if (orders == Orders::phase) shadow_.learn(what, block.rank(), lanes);
  if (orders == Orders::cluster) {
    shadow_.learn(this, block.rank(), lanes);
    shadow_.meets(block.rank(), lanes);
  }
}

void RaceDetector::arrived(const Awaited& at, bool) { shadow_.arrive(&at, this_thread()); }

void RaceDetector::cluster_arrival() {
  settle();
  shadow_.arrive(this, this_thread());
}

void RaceDetector::cluster_completes() { shadow_.phase_completes(this); }

// What the kernel before wrote may not be there yet on a GPU, or be overwritten by it.
void RaceDetector::check_dependency(const void* pc, std::uintptr_t address, std::size_t size, bool writes) {
  const unsigned thread = worker->current().number;
  const bool after = after_kernel_before_[worker->rank()][thread / 32] >> (thread % 32) & 1;
  for (std::uintptr_t place = address / 16; place < (address + size + 15) / 16; ++place) {
    if (!after && written_before_.contains(place))
      worker->fail(cudaErrorLaunchFailure, &worker->current(), line_of(pc),
                   std::string(writes ? "write" : "read") + " of " + std::to_string(size) +
                       " bytes of global memory that the kernel before wrote, without having waited for it");
    if (writes) written_.insert(place);
  }
}

void RaceDetector::check_dependency(const BulkCopy& copy, bool writes) {
  if (copy.repeated || copy.kind == BulkCopy::remote) return;
  bool outside = copy.of_a_tensor;
  copy.for_each_piece([&](char*, const char* global, int bytes) {
    if (global == nullptr) return;
    outside = false;
    copy_touches(copy.pc, global, static_cast<std::size_t>(bytes), copy.thread,
                 writes ? Access::atomic_write : Access::read);
  });
  // Of a box that is not in the tensor at all a GPU reads where the tensor map begins (so it was seen on an H200).
  if (outside && !writes) check_bounds(worker->memory_access(copy.pc, copy.map.data, 16, Access::read));
}

std::string RaceDetector::message_of(const Shadow::Mistake& mistake, Access access, std::size_t size,
                                     unsigned thread) const {
  const auto word = [](Access a) { return is_atomic(a) ? "atomic" : a == Access::read ? "read" : "write"; };
  const std::string what = std::string(word(access)) + " of " + std::to_string(size) + " bytes";
  const std::string other = thread_text(mistake.other.thread) + " at " +
                            (mistake.other.pc != nullptr ? line_of(mistake.other.pc) : std::string());
  std::string message;
  switch (mistake.kind) {
    case Shadow::Mistake::race:
      message = "race on shared memory: no barrier between this " + what + " and the " + word(mistake.other.access) +
                " of the same memory by " + other;
      if (global_ && mistake.other.thread / 32 == thread / 32 && !is_atomic(access) && !is_atomic(mistake.other.access))
        message += ran_in_step;
      break;
    case Shadow::Mistake::pending_copy:
      message = what + " of shared memory that a cp.async of " + other + " fills, before that thread waited for it";
      break;
    case Shadow::Mistake::uninitialised:
      message = what + " of uninitialised shared memory";
      break;
  }
  return message;
}

void RaceDetector::report(const Shadow::Mistake& mistake, Access access, std::size_t size, const void* pc) {
  unchanged_.forget(worker->launch().kernel);
  worker->fail(cudaErrorLaunchFailure, &worker->current(), line_of(pc),
               message_of(mistake, access, size, this_thread()));
}

void RaceDetector::report(const AsyncShadow::Mistake& mistake, const std::string& what, const void* pc) {
  using Kind = AsyncShadow::Mistake;
  const std::string thread = thread_text(mistake.thread), at = " at " + line_of(mistake.pc);
  const unsigned rank = mistake.thread / max_block_threads;
  const std::string warp = "warp " + std::to_string(mistake.thread % max_block_threads / 32) +
                           (rank == worker->rank() ? "" : " of block " + text(worker->cluster()[rank]->index()));
  const std::string load = "shared memory that a bulk copy of " + thread + at + " fills";
  const std::string phase =
      mistake.mbarrier == nullptr ? "" : "phase " + std::to_string(mistake.phase) + " of " + mistake.mbarrier->name();
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
      message = what + " of shared memory that a wgmma of " + warp + at + " reads, before that warp waited for it";
      break;
    case Kind::released:
      message = "race on shared memory: no barrier between this " + what + " and the wgmma of " + warp + at +
                ", which has read it";
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
  const std::size_t offset = offset_in_shared(copy.shared, *copy.block);
  const auto size = static_cast<std::size_t>(copy.bytes);
  const unsigned thread = in_cluster(copy);
  if (copy.kind == BulkCopy::remote) {
    const std::size_t source = offset_in_shared(copy.global);
    if (source != SharedMemory::no_offset)
      report_first(async_.store_starts(source, size, thread, copy.pc, shadow_),
                   shadow_.access(source, size, thread, Access::read, copy.pc),
                   "bulk copy from " + std::to_string(size) + " bytes", Access::read, size, copy.pc);
  }
  const auto asynchronous = async_.load_starts(offset, size, thread, copy.pc, mbarrier, shadow_);
  report_first(asynchronous, shadow_.access(offset, size, thread, Access::write, copy.pc),
               "bulk copy to " + std::to_string(size) + " bytes", Access::write, size, copy.pc);
  if (copy.block != worker) shadow_.bring_phases(&mbarrier, thread);
}

void RaceDetector::bulk_load_lands(const BulkCopy& copy, const Mbarrier&) {
  const std::size_t offset = offset_in_shared(copy.shared, *copy.block);
  if (copy.kind == BulkCopy::remote) {
    const std::size_t source = offset_in_shared(copy.global, *worker->cluster()[copy.rank]);
    if (source != SharedMemory::no_offset) async_.store_ends(source, static_cast<std::size_t>(copy.bytes));
  }
  async_.load_lands(offset, static_cast<std::size_t>(copy.bytes), shadow_);
  shadow_.bulk_write(offset, static_cast<std::size_t>(copy.bytes), copy.pc);
}

void RaceDetector::bulk_store_starts(const BulkCopy& copy) {
  check_dependency(copy, true);
  const std::size_t offset = offset_in_shared(copy.shared);
  const auto size = static_cast<std::size_t>(copy.bytes);
  const auto asynchronous = async_.store_starts(offset, size, in_cluster(copy), copy.pc, shadow_);
  report_first(asynchronous, shadow_.access(offset, size, in_cluster(copy), Access::read, copy.pc),
               "bulk copy from " + std::to_string(size) + " bytes", Access::read, size, copy.pc);
}

void RaceDetector::bulk_store_ends(const BulkCopy& copy) {
  const std::size_t offset = offset_in_shared(copy.shared);
  const auto size = static_cast<std::size_t>(copy.bytes);
  async_.store_ends(offset, size);
  if (const auto mistake = shadow_.access(offset, size, in_cluster(copy), Access::read, copy.pc))
    report(*mistake, Access::read, size, copy.pc);
}

void RaceDetector::mbarrier_made(const Mbarrier& mbarrier, const void* pc) {
  const std::size_t offset = offset_in_shared(mbarrier.address);
  if (const auto mistake = shadow_.access(offset, 8, in_cluster(mbarrier.maker), Access::write, pc))
    report(*mistake, Access::write, 8, pc);
}

void RaceDetector::mbarrier_used(const Mbarrier& mbarrier, const Wait& call) {
  const auto mistake = shadow_.check_read(offset_in_shared(mbarrier.address, mbarrier.block), 8, this_thread());
  if (mistake)
    worker->fail(cudaErrorLaunchFailure, &worker->current(), text(call.site),
                 std::string(call.name) + ": no barrier between this and what " + thread_text(mistake->other.thread) +
                     " did at " + line_of(mistake->other.pc) + " to the memory of " + mbarrier.name());
}

// One of several arrivals that a phase needs. Where nothing orders it after the end of the phase before, it could have
// counted there, in the place of one that had not come yet.
void RaceDetector::mbarrier_arrival(const Mbarrier& mbarrier, const Wait& call) {
  if (!shadow_.knows_the_last_phase(this_thread(), Shadow::number_of(mbarrier), mbarrier.phase()))
    worker->fail(cudaErrorLaunchFailure, &worker->current(), text(call.site),
                 std::string(call.name) + " counts in phase " + std::to_string(mbarrier.phase()) + " of " +
                     mbarrier.name() + ", and might have counted in the phase before: nobody has told this " +
                     "thread that that one was complete");
}

void RaceDetector::phase_completes(const Mbarrier& mbarrier) {
  shadow_.phase_completes(&mbarrier, Shadow::number_of(mbarrier), mbarrier.phase());
}

void RaceDetector::proxy_fence() { shadow_.proxy_fence(this_thread()); }

void RaceDetector::product_starts(const Product& product) {
  const unsigned thread = this_thread();
  const auto [a, b] = operands_of(product);
  for (const auto* operand : {&a, &b})
    for (const std::size_t offset : *operand) {
      const auto asynchronous = async_.product_starts(offset, thread, product.pc, shadow_);
      report_first(asynchronous, shadow_.check_read(offset, 16, thread), "read by wgmma", Access::read, 16, product.pc);
    }
}

void RaceDetector::product_ends(const Product& product) {
  const unsigned warp = worker->rank() * max_warps + product.warp;
  const std::uint32_t event = shadow_.warp_event(warp);
  const auto [a, b] = operands_of(product);
  for (const auto* operand : {&a, &b})
    for (const std::size_t offset : *operand) async_.product_ends(offset, warp, event, shadow_);
}

}  // namespace simt
