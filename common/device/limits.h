// What the current device has; on a CPU, what the SIMT engine says that its device has.
#pragma once

#include <cstddef>
#include <string>

int multiprocessors();
size_t largest_shared_memory();  // bytes of it that one thread block can have
size_t l2_bytes();               // the size of the L2 cache
int compute_capability();        // 90 for 9.0

// The GPUs of gpus.def, by their short names. The engine can take the limits of one; elsewhere that does nothing.
bool is_known_gpu(const std::string& name);
std::string known_gpus();  // "h200, h100, .."
void take_limits_of(const std::string& known);
