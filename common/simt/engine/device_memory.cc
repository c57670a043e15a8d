#include "simt/engine/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <iterator>

#include "simt/engine/observer.h"

namespace simt {
namespace {

constexpr std::size_t distance = std::size_t(16)
                                 << 20;  // between allocations, so that a wild index seldom hits the neighbour
// Where it begins unless something else is there: the same in every process, which grading needs.
constexpr std::uintptr_t usual_address = std::uintptr_t(1) << 44;
// The widest access of a thread; for counting, what cudaMalloc promises, on which the number of sectors depends.
std::size_t allocation_alignment() { return kernels_are_traced() ? 256 : 16; }

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

std::size_t page_bytes() {
  static const std::size_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

void* reserve(std::uintptr_t address, std::size_t bytes, int flags) {
  return mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

bool permit(std::uintptr_t begin, std::uintptr_t end, int protection) {
  return mprotect(reinterpret_cast<void*>(begin), end - begin, protection) == 0;
}

std::string bytes_text(std::size_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

}  // namespace

DeviceMemory& DeviceMemory::instance() {
  static DeviceMemory& memory = *new DeviceMemory;  // outlives every static object that frees in its destructor
  return memory;
}

DeviceMemory::DeviceMemory() {
  // Addresses cost nothing; where a limit forbids so many, fewer do.
  for (std::size_t bytes = std::size_t(1) << 42; bytes >= std::size_t(1) << 30; bytes /= 2) {
    void* range = reserve(usual_address, bytes, MAP_PRIVATE);
    if (range == MAP_FAILED) continue;
    begin_ = reinterpret_cast<std::uintptr_t>(range);
    end_ = begin_ + bytes;
    next_ = begin_ + distance;
    return;
  }
}

DeviceMemory::Blocks::iterator DeviceMemory::at_or_before(std::uintptr_t address) {
  auto after = blocks_.upper_bound(address);
  return after == blocks_.begin() ? blocks_.end() : std::prev(after);
}

// The start of `size` free bytes followed by a guard, 0 if there is none. Searches to the right of the newest block
// and then from the beginning: freed addresses come back as late as possible.
std::uintptr_t DeviceMemory::find_room(std::size_t size) {
  for (bool wrapped = false;; wrapped = true) {
    while (next_ < end_ && end_ - next_ >= size + distance) {
      const std::uintptr_t start = next_;
      auto block = at_or_before(start + size + distance - 1);
      while (block != blocks_.end() && block->second.end + distance > start && !block->second.live) {
        blocks_.erase(block);
        block = at_or_before(start + size + distance - 1);
      }
      if (block == blocks_.end() || block->second.end + distance <= start) return start;
      next_ = block->second.end + distance;
    }
    if (wrapped || begin_ == 0) return 0;
    next_ = begin_ + distance;
  }
}

void* DeviceMemory::allocate(std::size_t bytes, bool filled) {
  const std::lock_guard lock(mutex_);
  if (bytes > end_ - begin_) return nullptr;
  const std::size_t aligned = round_up(bytes, allocation_alignment());
  const std::size_t size = round_up(aligned, page_bytes());
  const std::uintptr_t pages = find_room(size);
  if (pages == 0) return nullptr;
  if (!permit(pages, pages + size, PROT_READ | PROT_WRITE)) return nullptr;
  if (filled) std::memset(reinterpret_cast<void*>(pages), 0xff, size);
  next_ = pages + size + distance;
  Block& block = blocks_[pages] = {pages + size - aligned, bytes, pages + size, true};
  protect(block);
  allocated_ += bytes;
  return reinterpret_cast<void*>(pages + size - aligned);
}

std::string DeviceMemory::free(void* pointer, bool by_reset) {
  const std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto block = at_or_before(address);
  if (block == blocks_.end() || address >= block->second.end) return "not the start of an allocation";
  if (address != block->second.start)
    return std::to_string(address - block->second.start) + " bytes into a " + std::to_string(block->second.bytes) +
           "-byte allocation, not its start";
  if (!block->second.live)
    return "a " + std::to_string(block->second.bytes) + "-byte allocation that " +
           (block->second.by_reset ? "cudaDeviceReset() has freed" : "was freed already");
  // Gives the pages back, keeps the addresses.
  reserve(block->first, block->second.end - block->first, MAP_PRIVATE | MAP_FIXED);
  block->second.live = false;
  block->second.by_reset = by_reset;
  allocated_ -= block->second.bytes;
  return "";
}

void DeviceMemory::protect(const Block& block) {
  const bool shut = closed_ && !open_ && (!block.managed || block.awaited);
  permit(block.start / page_bytes() * page_bytes(), block.end, shut ? PROT_NONE : PROT_READ | PROT_WRITE);
}

void DeviceMemory::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& [pages, block] : blocks_)
    if (block.live) protect(block);
}

void DeviceMemory::lift() {
  const std::lock_guard lock(mutex_);
  closed_ = false;
  for (const auto& [pages, block] : blocks_)
    if (block.live) protect(block);
}

void DeviceMemory::open_to_host(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto block = at_or_before(reinterpret_cast<std::uintptr_t>(pointer));
  block->second.managed = true;
  protect(block->second);
}

void DeviceMemory::open_all_to_host() {
  const std::lock_guard lock(mutex_);
  open_ = true;
}

void DeviceMemory::kernels_run() {
  const std::lock_guard lock(mutex_);
  for (auto& [pages, block] : blocks_)
    if (block.live && block.managed) block.awaited = true, protect(block);
}

void DeviceMemory::device_uses(const void* address) {
  const std::lock_guard lock(mutex_);
  const auto block = at_or_before(reinterpret_cast<std::uintptr_t>(address));
  block->second.awaited = true;
  protect(block->second);
}

void DeviceMemory::kernels_have_ended(const std::function<bool(const Block&)>& but_for) {
  const std::lock_guard lock(mutex_);
  for (auto& [pages, block] : blocks_)
    if (block.live && block.managed) block.awaited = block.awaited && but_for(block), protect(block);
}

bool DeviceMemory::ends_wait(const void* address) {
  const std::lock_guard lock(mutex_);
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  const auto found = at_or_before(a);
  if (found == blocks_.end() || !found->second.live || a >= found->second.end || !found->second.awaited) return false;
  found->second.awaited = false;
  return permit(found->first, found->second.end, PROT_READ | PROT_WRITE);
}

bool DeviceMemory::is_awaited(const void* address) {
  const std::lock_guard lock(mutex_);
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  const auto found = at_or_before(a);
  return found != blocks_.end() && found->second.live && a < found->second.end && found->second.awaited;
}

void DeviceMemory::open_page(const void* address, bool write) {
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) / page_bytes() * page_bytes();
  permit(page, page + page_bytes(), write ? PROT_READ | PROT_WRITE : PROT_READ);
}

void DeviceMemory::host_looks_at(const void* flag) {
  if (contains(flag) && ends_wait(flag)) kernels_have_ended([](const Block&) { return false; });
}

bool DeviceMemory::contains(const void* address) const {
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  return begin_ <= a && a < end_;
}

std::string DeviceMemory::outside(const void* address, std::size_t bytes) {
  std::size_t inside = 0;  // how many of the bytes are in the allocation
  {
    const std::lock_guard lock(mutex_);
    const auto a = reinterpret_cast<std::uintptr_t>(address);
    const auto found = at_or_before(a);
    if (found != blocks_.end() && found->second.live) {
      const Block& block = found->second;
      if (a >= block.start && a < block.start + block.bytes) inside = block.start + block.bytes - a;
    }
    if (bytes <= inside) return "";
    if (inside > 0)
      return "the start of " + bytes_text(bytes) + ", which end " + bytes_text(bytes - inside) + " past the end of a " +
             std::to_string(found->second.bytes) + "-byte allocation";
  }
  return where(address);
}

std::optional<DeviceMemory::Block> DeviceMemory::live_block_at(std::uintptr_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = at_or_before(address);
  if (found == blocks_.end() || !found->second.live) return std::nullopt;
  const Block& block = found->second;
  if (address < block.start || address >= block.start + block.bytes) return std::nullopt;
  return block;
}

std::string DeviceMemory::where(const void* address) {
  const std::lock_guard lock(mutex_);
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  auto nearest = at_or_before(a);
  const auto after = blocks_.upper_bound(a);
  // In the guard between two blocks: the nearer one is meant, most likely.
  if (after != blocks_.end() &&
      (nearest == blocks_.end() || (a >= nearest->second.end && after->second.start - a < a - nearest->second.end)))
    nearest = after;
  if (nearest == blocks_.end()) return "in device memory that was never allocated";
  const Block& block = nearest->second;
  const std::string name = "a " + std::to_string(block.bytes) + "-byte allocation" +
                           (block.live       ? ""
                            : block.by_reset ? " that cudaDeviceReset() has freed"
                                             : " that was freed");
  if (a < block.start) return bytes_text(block.start - a) + " before the start of " + name;
  if (a < block.start + block.bytes) return "at byte " + std::to_string(a - block.start) + " of " + name;
  return "at byte " + std::to_string(a - block.start) + ", " + bytes_text(a - block.start - block.bytes) +
         " past the end of " + name;
}

std::size_t DeviceMemory::allocated() const {
  const std::lock_guard lock(mutex_);
  return allocated_;
}

std::vector<DeviceMemory::Block> DeviceMemory::live() const {
  const std::lock_guard lock(mutex_);
  std::vector<Block> found;
  for (const auto& [pages, block] : blocks_)
    if (block.live) found.push_back(block);
  return found;
}

void DeviceMemory::replace_all(const std::vector<Block>& by) {
  const std::lock_guard lock(mutex_);
  for (const auto& [pages, block] : blocks_)
    if (block.live) reserve(pages, block.end - pages, MAP_PRIVATE | MAP_FIXED);
  blocks_.clear();
  for (const Block& block : by) {
    const std::uintptr_t pages = block.start / page_bytes() * page_bytes();
    permit(pages, block.end, PROT_READ | PROT_WRITE);
    blocks_[pages] = block;
  }
}

}  // namespace simt
