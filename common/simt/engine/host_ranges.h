// Which addresses are the host's own: of memory, the heap and the stack of the program's first thread; of functions,
// those that host code has taken of the device's.
#pragma once

#include <cstdint>
#include <string>

#include "simt/engine/types.h"

namespace simt {

// "its heap", "its stack"; null for everything else: device memory, constants, the engine's own.
const char* host_memory_at(std::uintptr_t address);

// Where a device function seems to lie to host code: nothing is there, so that a call ends there.
const void* address_in_host_code(const void* function, const char* file, int line);
// "square, whose address host code has taken at mine.cu:7: on a GPU .."; empty if it is no such address.
std::string function_in_host_code(const void* address);
std::string taken_by_the_host(const std::string& function, const Site& by);

}  // namespace simt
