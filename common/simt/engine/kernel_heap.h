// What kernels allocate themselves, with malloc() and new: blocks in one allocation of device memory, with room between
// them that no access may touch. It is as large as cudaLimitMallocHeapSize says when a kernel first asks for memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace simt {

class KernelHeap {
 public:
  static KernelHeap& instance();
  static constexpr const char* for_kernels_alone =
      "memory that a kernel has allocated itself (malloc, new), which no call of the host can use";

  bool set_size(std::size_t bytes);  // false once a kernel has asked for memory
  std::size_t size() const { return size_; }

  void* allocate(std::size_t bytes);  // null if there is no room left
  std::string free(void* pointer);    // empty if the block was freed; else what is wrong with the pointer

  bool has(std::uintptr_t address) const { return address >= begin_ && address < end_; }
  // First byte and end of the block in which the address is.
  std::optional<std::pair<std::uintptr_t, std::uintptr_t>> block_at(std::uintptr_t address);
  std::string where(std::uintptr_t address);  // "at byte 40, 0 bytes past the end of the 40 bytes that .."

 private:
  // The next one begins where its room ends.
  struct Block {
    std::size_t bytes;  // 0: of several freed ones, or the rest of one
    std::size_t room;
    bool live;
  };
  using Blocks = std::map<std::uintptr_t, Block>;
  std::uintptr_t room_for(std::size_t room);
  Blocks::iterator join(Blocks::iterator freed);  // with freed ones beside it

  mutable std::mutex mutex_;
  Blocks blocks_;
  bool joined_ = false;                                    // since the newest part did not suffice for the first time
  std::set<std::pair<std::size_t, std::uintptr_t>> free_;  // then: the freed blocks, by their room
  std::size_t size_ = 8 << 20, used_ = 0;
  std::uintptr_t next_ = 0;  // what was freed comes back when there is nothing else
  std::atomic<std::uintptr_t> begin_ = 0, end_ = 0;
};

}  // namespace simt
