#include "simt/engine/kernel_heap.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "simt/engine/device_memory.h"

namespace simt {
namespace {
constexpr std::size_t between = 64;  // bytes of room
std::size_t with_room(std::size_t bytes) { return (bytes + 15) / 16 * 16 + between; }
}  // namespace

KernelHeap& KernelHeap::instance() {
  static KernelHeap& heap = *new KernelHeap;
  return heap;
}

bool KernelHeap::set_size(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (begin_ == 0) size_ = bytes;
  return size_ == bytes;
}

KernelHeap::Blocks::iterator KernelHeap::join(Blocks::iterator freed) {
  const auto take = [&](Blocks::iterator into, Blocks::iterator next) {
    free_.erase({into->second.room, into->first});
    free_.erase({next->second.room, next->first});
    into->second = {0, into->second.room + next->second.room, false};
    blocks_.erase(next);
    return into;
  };
  if (const auto next = std::next(freed); next != blocks_.end() && !next->second.live) take(freed, next);
  if (freed != blocks_.begin() && !std::prev(freed)->second.live) freed = take(std::prev(freed), freed);
  free_.emplace(freed->second.room, freed->first);
  return freed;
}

// In the newest part, or in the smallest freed block that is large enough; 0 if there is none.
std::uintptr_t KernelHeap::room_for(std::size_t room) {
  if (room <= end_ - next_) return std::exchange(next_, next_ + room);
  if (!std::exchange(joined_, true))
    for (auto each = blocks_.begin(); each != blocks_.end(); ++each)
      if (!each->second.live) each = join(each);
  const auto best = free_.lower_bound({room, 0});
  if (best == free_.end()) return 0;
  const auto [all, start] = *best;
  free_.erase(best);
  blocks_.erase(start);
  if (all > room) {
    blocks_[start + room] = {0, all - room, false};
    free_.emplace(all - room, start + room);
  }
  return start;
}

void* KernelHeap::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes > size_ - std::min(used_, size_)) return nullptr;
  if (begin_ == 0) {
    const std::size_t all = 4 * size_ + between;  // most of it may be room
    next_ = reinterpret_cast<std::uintptr_t>(DeviceMemory::instance().allocate(all, /*filled=*/false));
    if (next_ == 0) return nullptr;
    end_ = next_ + all;
    begin_ = next_;
    next_ += between;
  }
  const std::uintptr_t start = room_for(with_room(bytes));
  if (start == 0) return nullptr;
  blocks_[start] = {bytes, with_room(bytes), true};
  used_ += bytes;
  return std::memset(reinterpret_cast<void*>(start), 0xff, bytes);
}

std::string KernelHeap::free(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (block == blocks_.end()) return "nothing that a kernel has allocated begins at this address";
  if (!block->second.live) return "it was freed already";
  block->second.live = false;
  used_ -= block->second.bytes;
  if (joined_) join(block);
  return "";
}

std::optional<std::pair<std::uintptr_t, std::uintptr_t>> KernelHeap::block_at(std::uintptr_t address) {
  const std::lock_guard lock(mutex_);
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return std::nullopt;
  const auto& [start, block] = *std::prev(after);
  if (!block.live || address >= start + block.bytes) return std::nullopt;
  return std::pair(start, start + block.bytes);
}

std::string KernelHeap::where(std::uintptr_t address) {
  const std::lock_guard lock(mutex_);
  auto nearest = blocks_.upper_bound(address);
  if (nearest != blocks_.begin() && (nearest == blocks_.end() || nearest->first - address > between / 2)) --nearest;
  const auto& [start, block] = *nearest;
  if (block.bytes == 0) return "in memory that kernels have allocated, and freed";
  const std::string name =
      " the " + std::to_string(block.bytes) + " bytes that a kernel has allocated" + (block.live ? "" : ", and freed");
  if (address < start) return std::to_string(start - address) + " bytes before" + name;
  const std::size_t at = address - start;
  if (at < block.bytes) return "at byte " + std::to_string(at) + " of" + name;
  return "at byte " + std::to_string(at) + ", " + std::to_string(at - block.bytes) + " bytes past the end of" + name;
}

}  // namespace simt
