// What the current device has. On the SIMT engine these are its own.
#pragma once

#include <cstddef>

int multiprocessors();
size_t largest_shared_memory();  // bytes of it that one thread block can have
