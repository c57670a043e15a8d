// A launch all of whose thread blocks run at the same time, so that each may wait for any other. CUDA C++ Programming
// Guide, "Grid Synchronization".
//
// The GPU starts such a kernel only when there is room for all of it, and refuses one that is larger than the GPU.
// Without that, two such kernels on two streams might each have half of their blocks on the multiprocessors, waiting
// for the other half for ever.
#pragma once

#include "device/launch.h"

// launch(), for a kernel whose blocks wait for one another (device/semaphore.h): no more of them than run at a time.
template <class... Params, class... Args>
void launch_cooperative(void (*kernel)(Params...), const LaunchConfig& config, Args&&... args) {
  launch_grid(kernel, config, Blocks::together, std::forward<Args>(args)...);
}
