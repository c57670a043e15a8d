// Which addresses are the host's own memory: the heap, and the stack of the program's first thread.
#pragma once

#include <cstdint>

namespace simt {

// "its heap", "its stack"; null for everything else: device memory, constants, the engine's own.
const char* host_memory_at(std::uintptr_t address);

}  // namespace simt
