#include "simt/cuda/kernel_heap.h"

#include <cstdlib>
#include <string>

#include "simt/cuda/host_checks.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"
#include "simt/engine/kernel_heap.h"

namespace simt {

void* kernel_malloc(std::size_t bytes) {
  if (worker == nullptr || !worker->in_kernel()) return std::malloc(bytes);
  void* const memory = KernelHeap::instance().allocate(bytes);
  if (memory != nullptr) host_checks::kernel_allocated(memory, bytes);
  return memory;
}

void kernel_free(const volatile void* pointer) {
  void* const memory = const_cast<void*>(pointer);
  if (memory == nullptr) return;
  if (worker == nullptr || !worker->in_kernel()) return std::free(memory);
  if (const std::string wrong = KernelHeap::instance().free(memory); !wrong.empty())
    worker->fail(cudaErrorIllegalAddress, &worker->current(), line_of(__builtin_return_address(0)),
                 "free or delete in a kernel: " + wrong);
  host_checks::kernel_freed();
}

}  // namespace simt
