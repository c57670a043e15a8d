// Clusters: blocks that run at the same time and reach each other's shared memory. They take turns on one OS thread,
// and each has a Worker of its own: one goes on until none of its threads can, then the next. So what a block does to
// another one, it does to that block's worker, at once.
#include <algorithm>
#include <chrono>

#include "simt/engine/engine.h"
#include "simt/engine/switch.h"

namespace simt {

// As in PTX, an address says by its upper bits whose it is; none of them is set in those of the own block.
constexpr unsigned address_bits_of_a_block = 25;
static_assert(first_static_address < 1u << address_bits_of_a_block);

void Worker::make_cluster(const Launch& launch) {
  const unsigned blocks = launch.cluster_blocks();
  members_ = {this};
  while (others_.size() + 1 < blocks) {
    others_.push_back(std::make_unique<Worker>());
    others_.back()->first_ = this;
  }
  for (unsigned rank = 1; rank < blocks; ++rank) {
    Worker& member = *others_[rank - 1];
    member.rank_ = rank;
    members_.push_back(&member);
    member.prepare_block(launch);
  }
}

// What prepare() does for the first.
void Worker::prepare_block(const Launch& launch) {
  launch_ = first_->launch_;
  shared_.prepare(launch.module, launch.shared_bytes);
  order_threads(0);
  observers_ = launch.observers;
  variables_ = DeviceVariable::all();
  computing_ = telling_ = false;
  suspicion_ = nullptr;
}

// This block's turn has come.
void Worker::activate() {
  if (worker == this) return;
  worker->shared_.leave();
  shared_.come_back();
  worker = this;
  blockIdx = index_;
}

// Whether a cluster's blocks take turns from the last to the first.
bool Worker::backwards() const {
  return launch_->schedule.order == Order::reverse || launch_->schedule.order == Order::last_first;
}

void Worker::run_cluster(std::uint64_t i) {
  const std::uint64_t number = number_of(i);
  const dim3 grid = launch_->grid, size = launch_->cluster, clusters(grid.x / size.x, grid.y / size.y, grid.z / size.z);
  for (Worker* each : members_) {
    each->activate();
    if (launch_->schedule.order == Order::shuffled)
      each->order_threads(launch_->schedule.seed * 0x9e3779b97f4a7c15 + number * members_.size() + each->rank_);
    const uint3 within = index_of(each->rank_, size);
    each->begin_block({static_cast<unsigned>(number % clusters.x) * size.x + within.x,
                       static_cast<unsigned>(number / clusters.x % clusters.y) * size.y + within.y,
                       static_cast<unsigned>(number / clusters.x / clusters.y) * size.z + within.z});
    each->observe(&Observer::block_pauses);
  }
  const auto last = static_cast<unsigned>(members_.size()) - 1;
  unsigned rank = launch_->schedule.order == Order::shuffled
                      ? static_cast<unsigned>(mix(launch_->schedule.seed + number) % members_.size())
                  : backwards() ? 0
                                : last;  // the one before the first
  while (Worker* const turn = next_of_cluster(rank)) {
    rank = turn->rank_;
    turn->activate();
    turn->observe(&Observer::block_goes_on);
    if (!turn->words_.empty() && turn->warps_ready_ == 0) turn->take_written_word();
    Thread& thread = *turn->next(turn->first_ready_warp());
    if (thread.fiber == nullptr) turn->start_on_a_fiber(thread);
    make_room({&turn->main_.context, &thread.fiber->context});
    turn->observe(&Observer::block_pauses);
  }
  activate();
}

// A block that can go on: the next one after that rank. Null if all have ended.
Worker* Worker::next_of_cluster(unsigned after) {
  const auto blocks = static_cast<unsigned>(members_.size());
  bool live = false, words = false;
  const auto find = [&](const auto& can_go_on) -> Worker* {
    for (unsigned n = 1; n <= blocks; ++n) {
      Worker* const each = members_[(backwards() ? after + blocks - n : after + n) % blocks];
      if (can_go_on(*each)) return each;
    }
    return nullptr;
  };
  const auto has_word = [](const Worker& each) {
    return std::any_of(each.words_.begin(), each.words_.end(), [](const Word* word) { return word->written(); });
  };
  if (Worker* const ready = find([&](const Worker& each) {
        live = live || each.live_ != 0;
        words = words || !each.words_.empty();
        return each.warps_ready_ != 0;
      }))
    return ready;
  if (!live) return nullptr;
  if (words) {
    launch_->waits_for_others(*this);
    while (written_word() == nullptr && !launch_->all_wait_for_others()) {
      next_turn();
      std::this_thread::yield();
    }
    launch_->waits_no_more(*this);
  }
  if (Worker* const written = find(has_word)) return written;
  worker->current_ = nullptr;
  deadlock_of_cluster();
}

// --- The cluster's barrier ---

void Worker::cluster_arrive(const Wait& call, bool releases) {
  const Thread& self = *current_;
  if (cluster_barrier_.not_waited.has(self.warp, self.position))
    fail(cudaErrorLaunchFailure, &self, text(call.site),
         std::string(call.name) + ": the thread has arrived before, and has not waited since");
  cluster_barrier_.came.add(self.warp, self.position);
  cluster_barrier_.not_waited.add(self.warp, self.position);
  ++cluster_barrier_.arrived;
  // A fence.mbarrier_init is for such an arrival.
  if (releases || hopper_.mbarriers.fenced_by(self.number)) observe(&Observer::cluster_arrival);
  release_cluster_if_all_came();
}

void Worker::cluster_wait(const Wait& wait) {
  const Thread& self = *current_;
  if (!cluster_barrier_.not_waited.remove(self.warp, self.position))
    fail(cudaErrorLaunchFailure, &self, text(wait.site),
         std::string(wait.name) + ": the thread has not arrived since it waited last");
  if (!cluster_barrier_.came.has(self.warp, self.position)) return pass(Orders::cluster, &cluster_barrier_);
  begin_wait(wait, cluster_barrier_);
  cluster_barrier_.waiting.add(self.warp, self.position);
  suspend(self.warp);
}

void Worker::release_cluster_if_all_came() {
  unsigned arrived = 0, live = 0;
  for (const Worker* each : cluster()) arrived += each->cluster_barrier_.arrived, live += each->live_;
  if (arrived == 0 || arrived != live) return;
  observe(&Observer::cluster_completes);
  for (Worker* each : cluster()) {
    ClusterBarrier& part = each->cluster_barrier_;
    if (part.waiting.warps != 0) each->release(part, part.waiting);
    part.next_phase();
  }
}

// The first thread of the launch that comes there has it begin again.
void Worker::asks_for_cluster(dim3 cluster) {
  const dim3 has = launch_->cluster;
  if (has.x == cluster.x && has.y == cluster.y && has.z == cluster.z) return;
  {
    const std::lock_guard lock(launch_->mutex);
    launch_->asked_cluster = cluster;
  }
  launch_->failed = true;
  siglongjmp(first_->landing_, asked);
}

// --- Their shared memory ---

Worker* Worker::block_with(const void* pointer) const {
  if (shared_.contains(pointer)) return const_cast<Worker*>(this);
  for (Worker* each : cluster())
    if (each != this && each->shared_.own(pointer) != nullptr) return each;
  return nullptr;
}

std::size_t Worker::shared_offset(const void* pointer) const {
  const std::size_t offset = shared_.offset_of(reinterpret_cast<std::uintptr_t>(pointer));
  if (cluster().size() == 1) return offset;
  if (offset != SharedMemory::no_offset) return rank_ * shared_bytes_of_each() + offset;
  for (const Worker* each : cluster()) {
    const char* const own = each == this ? nullptr : each->shared_.own(pointer);
    if (own == nullptr) continue;
    const std::size_t there = each->shared_.offset_of(reinterpret_cast<std::uintptr_t>(own));
    return there == SharedMemory::no_offset ? there : each->rank_ * shared_bytes_of_each() + there;
  }
  return offset;
}

std::uint32_t Worker::shared_address(const void* pointer) const {
  const Worker* const block = cluster().size() == 1 ? this : block_with(pointer);
  if (block == nullptr || block == this) return shared_.address_of(pointer);
  return (block->rank_ + 1) << address_bits_of_a_block | block->shared_.address_of(block->shared_.own(pointer));
}

void* Worker::shared_pointer(std::uint32_t address) const {
  const unsigned block = address >> address_bits_of_a_block;
  if (block == 0 || block > cluster().size()) return shared_.pointer_to(address);
  const std::uint32_t there = address & ((1u << address_bits_of_a_block) - 1);
  if (block - 1 == rank_) return shared_.pointer_to(there);
  const SharedMemory& shared = cluster()[block - 1]->shared_;
  return shared.for_others(shared.pointer_to(there));
}

void* Worker::map_shared(const void* pointer, unsigned rank) const {
  const std::uint32_t address = shared_address(pointer);
  if (address == SharedMemory::no_address || rank >= cluster().size()) return nullptr;
  return shared_pointer((rank + 1) << address_bits_of_a_block | (address & ((1u << address_bits_of_a_block) - 1)));
}

void Worker::reaches(const Worker& block, const char* name, const Site& site) {
  if (&block == this) return;
  if (block.has_ended())
    fail(cudaErrorLaunchFailure, current_, text(site),
         std::string(name) + ": block " + text(block.index_) +
             " of the cluster, whose shared memory this is about, has "
             "returned; a block has to stay until the others have done with its shared memory (barrier.cluster)");
  observe(&Observer::reached, block, name, site);
}

}  // namespace simt
