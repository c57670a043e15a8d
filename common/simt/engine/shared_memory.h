// The shared memory of the block that an OS thread runs: dynamic, in a buffer that ends at a guard page, and static,
// in the thread_local variables of the kernel's module. Both are filled with 0xFF (NaN) before every block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "simt/engine/modules.h"

namespace simt {

// PTX's addresses of shared memory have 32 bits. Dynamic shared memory begins at 1024, as on an H100, and static shared
// memory, in the order of its thread-local block, far behind it. Addresses are multiples of what the pointers are
// multiples of, up to 128 in dynamic and 1024 in static shared memory.
constexpr std::uint32_t first_shared_address = 1024, first_static_address = 1 << 24;

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

  // In a cluster, whose blocks take turns on the OS thread: another block goes on, which has its own static shared
  // memory at the same addresses; and this one again. Where others find a place in this block's memory; that place from
  // there, null if it is not this block's; and where its bytes are now.
  void leave();
  void come_back();
  char* for_others(void* own) const;
  char* own(const void* of_others) const;
  char* now(char* own) const { return away_ ? for_others(own) : own; }
  void close();  // the block has ended, and others must not come any more: until the next poison()

  void* dynamic() const { return dynamic_; }  // aligned to 128 bytes
  char* pages() const { return pages_; }      // where `dynamic` lies in

  // Does the address lie in it, with what is beside the dynamic part? And do so many bytes, with nothing beside it?
  bool contains(const void* address) const;
  bool contains(const void* address, std::size_t bytes) const;

  // Where the two lie, with what is beside them: first byte and length.
  std::pair<std::uintptr_t, std::size_t> span_of_dynamic() const;
  std::pair<std::uintptr_t, std::size_t> span_of_static() const;

  // All of it: first byte and length.
  std::vector<std::pair<char*, std::size_t>> ranges() const;

  // The place of a byte when all of it is laid out in one piece, in which what is aligned to 16 bytes stays so; and the
  // length of that piece.
  static constexpr std::size_t no_offset = ~std::size_t(0);  // of what is not shared
  std::size_t offset_of(std::uintptr_t address) const;
  std::size_t extent() const { return extent_; }

  // PTX's address of a pointer, and back.
  static constexpr std::uint32_t no_address = ~0u;  // of what is not shared
  std::uint32_t address_of(const void* pointer) const;
  void* pointer_to(std::uint32_t address) const;
  const void* at(std::uint32_t address)
      const;  // by a descriptor, of 16 bytes: dynamic, or static if the launch has none; else null
  std::string place(const void* address) const;  // "byte 64 of dynamic shared memory"

  // "4 bytes past the end of the 1024 bytes of dynamic shared memory"; empty if the address has nothing to do with it.
  std::string where(const void* address) const;

  // Does the access begin in shared memory or beside it, and not lie in it as a whole?
  bool leaves(std::uintptr_t address, std::size_t bytes) const;

  // Guards stand between static shared variables, and a wide one behind them, before the engine's own thread_local
  // variables: its pages are shut while blocks run. Where something has been written to one since then: as where() says
  // it, empty if nowhere.
  void shut_guards() const;
  void open_guards() const;
  std::string overwritten_guard() const;

 private:
  void find_static(const Module& module);
  template <class Visit>
  void for_each_guard(Visit visit) const;
  std::string beside_static(const char* address) const;

  char* pages_;
  std::size_t size_;
  char* dynamic_ = nullptr;
  std::size_t dynamic_bytes_ = 0;
  std::vector<std::pair<char*, std::size_t>> static_;
  const Module* module_ = nullptr;
  std::uintptr_t first_static_ = 0, last_static_ = 0;  // what they lie between, with their guards
  struct Part {
    std::uintptr_t begin;
    std::size_t bytes, offset;
  };
  std::vector<Part> parts_;  // of that piece
  std::size_t extent_ = 0;
  bool closed_ = false;
  bool away_ = false;
  struct Kept {  // static shared memory, as far from each other as there
    Kept() = default;
    ~Kept();
    char* pages = nullptr;
    std::size_t size = 0;
    char* begin = nullptr;
  } kept_;
  char* static_begin_ = nullptr;  // the multiple of 1024 from which the module's thread-local block is counted
};

}  // namespace simt
