// Device memory: one reserved range of addresses in which each allocation ends at an inaccessible guard, so that an
// access past the end faults at the very element, and freed memory stays inaccessible for as long as possible.
//
// An allocation starts as far right in its pages as 16-byte alignment permits; sizes that are multiples of 256
// therefore start at multiples of 256, as on a GPU. What lies between the first page's start and the allocation
// (less than a page) and after its end (less than 16 bytes) is accessible and not checked. Where kernels are traced,
// every allocation starts at a multiple of 256, and the race detector checks each access against its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace simt {

class DeviceMemory {
 public:
  static DeviceMemory& instance();

  struct Block {
    std::uintptr_t start;  // the allocation
    std::size_t bytes;
    std::uintptr_t end;  // of its pages
    bool live;
    bool managed = false;   // the host may touch it, too
    bool awaited = false;   // but not before it has waited for a kernel
    bool by_reset = false;  // not live: cudaDeviceReset() has freed it
  };

  // Memory for `bytes` > 0, filled with 0xFF or, if it need not be, 0; null if there are no addresses or pages left.
  void* allocate(std::size_t bytes, bool filled = true);

  // Empty if the allocation was freed; else what is wrong with the pointer.
  std::string free(void* pointer, bool by_reset = false);

  // Is the address in the reserved range, allocated or not?
  bool contains(const void* address) const;

  // The live allocation in whose bytes the address lies.
  std::optional<Block> live_block_at(std::uintptr_t address);

  // Empty if all bytes lie in one live allocation; else where they lie.
  std::string outside(const void* address, std::size_t bytes);

  // Where an address in the reserved range lies: "4 bytes past the end of a 64000-byte allocation".
  std::string where(const void* address);

  std::size_t allocated() const;

  // In a program that is watched (findings.h), the host may not touch what is allocated, but for managed memory, and
  // that only while no kernel runs that uses it.
  void close();                      // from now on
  void lift();                       // the engine may; close() again afterwards
  void open_to_host(void* pointer);  // managed
  void open_all_to_host();           // in a program whose host code does so rightly: to be called before close()
  bool all_open() const { return open_; }
  void kernels_run();
  void device_uses(const void* address);  // the managed memory there, by what is no kernel
  void kernels_have_ended(const std::function<bool(const Block&)>& but_for);
  void host_looks_at(const void* flag);  // by a volatile access, or an atomic one: it waits for the kernel so
  bool ends_wait(const void* address);   // of managed memory in spite of a kernel; false if that was not closed
  bool is_awaited(const void* address);  // would it be false?
  void open_page(const void* address, bool write);  // the kernel does not use it; `write`: for writes, too

  // For a process that has the same allocations at the same addresses as another one.
  std::uintptr_t first_address() const { return begin_; }
  std::vector<Block> live() const;
  void replace_all(const std::vector<Block>& by);

  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

 private:
  using Blocks = std::map<std::uintptr_t, Block>;  // by the start of their pages

  DeviceMemory();
  Blocks::iterator at_or_before(std::uintptr_t address);
  std::uintptr_t find_room(std::size_t size);

  std::uintptr_t begin_ = 0;
  std::uintptr_t end_ = 0;
  std::uintptr_t next_ = 0;  // where the search for room starts: right of the newest block
  std::size_t allocated_ = 0;
  bool closed_ = false, open_ = false;
  void protect(const Block& block);
  Blocks blocks_;
  mutable std::mutex mutex_;
};

}  // namespace simt
