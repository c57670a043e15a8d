// What the current device has; on a CPU, what the SIMT engine says that its device has.
#pragma once

#include <cstddef>

int multiprocessors();
size_t largest_shared_memory();  // bytes of it that one thread block can have
size_t l2_bytes();               // the size of the L2 cache
