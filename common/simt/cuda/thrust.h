// For programs with Thrust, whose headers come from NVIDIA's CCCL (include/cuda/__cccl_config): its algorithms are
// loops of the host over device memory.
#pragma once

#include <cstddef>

namespace simt {

// From now on host code may touch device memory, and what lies there counts as written: nobody sees what these loops
// do. Returns true.
bool open_device_memory();

// Device memory, null if there is none; in a kernel, its heap.
void* allocate_for_thrust(std::size_t bytes);
void free_for_thrust(void* memory);

}  // namespace simt
