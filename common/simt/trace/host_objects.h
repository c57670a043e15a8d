// Objects with virtual functions that host code has made and that lie where kernels reach them. Such an object begins
// with the address of a table of functions: on a GPU, of a table in the host's memory, and a virtual call in a kernel
// fails. Here both sides have one table, so what tells is who has made the object: where its constructor ran in place,
// and else where the copy came from whose words point to tables. And the other way round: objects that a kernel has
// made, in managed memory or copied to the host, for a virtual call there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>

namespace simt {

class HostObjects {
 public:
  static HostObjects& instance();
  // Are there any? For each access of a kernel; of the host, if some are from the device.
  static bool any() { return any_; }
  static bool any_of_kernels() { return any_of_kernels_; }

  // The constructor of an object sets its table: one that host code calls.
  void made(const void* object);
  void made_by_kernel(const void* object);
  void argument(const void* object);  // of a kernel: a copy of the host's, byte by byte
  void copied(const void* to, const void* from, std::size_t bytes);
  void forget(const void* memory, std::size_t bytes);  // a kernel has written there, or it was freed

  bool has(std::uintptr_t object);
  void host_reads(const void* pc, const void* address);
  bool made_by_a_kernel(const void* object);
  // Does the address lie in the table to which this object points?
  static bool is_in_table(std::uintptr_t address, const void* object);

 private:
  std::mutex mutex_;
  std::set<std::uintptr_t> on_device_;    // where their tables' addresses are
  std::set<std::uintptr_t> from_device_;  // made by kernels, or copied from such objects
  static inline bool any_ = false, any_of_kernels_ = false;
};

}  // namespace simt
