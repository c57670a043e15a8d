// The shared memory of the block that an OS thread runs: dynamic, in a buffer that ends at a guard page, and static,
// in the thread_local variables of the kernel's module. Both are filled with 0xFF (NaN) before every block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "simt/modules.h"

namespace simt {

constexpr std::uint32_t first_shared_address = 1024;  // of dynamic shared memory, as PTX counts, and an H100 too

constexpr std::size_t most_shared = 227 * 1024;  // an H100's, per block

class SharedMemory {
 public:
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // To be called on the OS thread that will run the blocks, once per launch.
  void prepare(const Module* module, std::size_t dynamic_bytes);
  void poison();  // before each block

  void* dynamic() const { return dynamic_; }  // aligned to 128 bytes

  // All of it: first byte and length.
  std::vector<std::pair<char*, std::size_t>> ranges() const;

  bool contains(const void* address, std::size_t bytes) const;
  // PTX's address of dynamic shared memory and back: null outside, for 16 bytes.
  std::uint32_t address_of(const void* pointer) const;
  const void* at(std::uint32_t address) const;
  std::string place(const void* address) const;  // "byte 64 of dynamic shared memory"

  // "4 bytes past the end of the 1024 bytes of dynamic shared memory"; empty if the address has nothing to do with it.
  std::string where(const void* address) const;

 private:
  char* pages_;
  std::size_t size_;
  char* dynamic_ = nullptr;
  std::size_t dynamic_bytes_ = 0;
  std::vector<std::pair<char*, std::size_t>> static_;
};

}  // namespace simt
