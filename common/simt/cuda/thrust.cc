#include "simt/cuda/thrust.h"

#include "simt/cuda/kernel_heap.h"
#include "simt/cuda/runtime.h"
#include "simt/engine/device_memory.h"
#include "simt/engine/engine.h"

namespace simt {

bool open_device_memory() {
  DeviceMemory::instance().open_all_to_host();
  return true;
}

void* allocate_for_thrust(std::size_t bytes) {
  if (worker != nullptr && worker->in_kernel()) return kernel_malloc(bytes);
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : nullptr;
}

void free_for_thrust(void* memory) {
  if (worker != nullptr && worker->in_kernel())
    kernel_free(memory);
  else
    cudaFree(memory);
}

}  // namespace simt
