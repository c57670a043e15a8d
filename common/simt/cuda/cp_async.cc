// cp.async: its checks, and its names for kernels.
#include <string>

#include "simt/cuda/thread.h"
#include "simt/engine/copy.h"
#include "simt/engine/engine.h"

namespace simt {

Copy cp_async_of(Worker& self, const void* pc, void* shared, const void* global, std::size_t bytes,
                 std::size_t source_bytes) {
  void* stack[] = {static_cast<char*>(const_cast<void*>(pc)) - 1};
  if ((bytes != 4 && bytes != 8 && bytes != 16) || source_bytes > bytes)
    self.fail(cudaErrorLaunchFailure, &self.current(), source_line(stack),
              "cp.async of " + std::to_string(bytes) + " bytes, " + std::to_string(source_bytes) +
                  " of them from memory: must be 4, 8 or 16, and no more from memory than that");
  if (reinterpret_cast<std::uintptr_t>(shared) % bytes != 0 || reinterpret_cast<std::uintptr_t>(global) % bytes != 0)
    self.fail(cudaErrorMisalignedAddress, &self.current(), source_line(stack),
              "cp.async of " + std::to_string(bytes) + " bytes: an address is not a multiple of that");
  if (!self.shared().contains(shared, bytes))
    self.fail(cudaErrorIllegalAddress, &self.current(), source_line(stack),
              "cp.async of " + std::to_string(bytes) + " bytes to where no shared memory is");
  return {shared, global, static_cast<unsigned>(bytes), static_cast<unsigned>(source_bytes), self.current().number, pc};
}

void start_cp_async(Worker& self, const void* pc, void* shared, const void* global, std::size_t bytes,
                    std::size_t source_bytes) {
  self.copies().start(cp_async_of(self, pc, shared, global, bytes, source_bytes), self);
}

void cp_async(void* shared, const void* global, std::size_t bytes, std::size_t source_bytes) {
  start_cp_async(this_worker("cp.async"), __builtin_return_address(0), shared, global, bytes, source_bytes);
}

void cp_async_commit() { this_worker("cp.async").copies().commit(); }

void cp_async_wait(int pending_groups, const char* file, int line) {
  if (left_out({file, line})) return;
  Worker& self = this_worker("cp.async");
  self.copies().wait(pending_groups, self);
}

}  // namespace simt
