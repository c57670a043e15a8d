// How much memory the engine's device has: the host's.
#pragma once

#include <cstddef>
#include <string>

namespace simt {

struct HostMemory {
  std::size_t free;
  std::size_t total;
};

// Of the machine, or of the control group that confines this process. What files are cached in counts as free: the
// system takes it back when a program needs it. `root` is what /proc and /sys are below of, for tests.
HostMemory host_memory(const std::string& root = "");

}  // namespace simt
