// Programmatic dependent launch: a kernel that starts while the one before it on the stream is ending, does what needs
// nothing from it, and waits before it touches anything that it wrote. CUDA C++ Programming Guide, "Programmatic
// Dependent Launch and Synchronization"; PTX ISA, "griddepcontrol".
//
// Compute capability 9.0 and later. Elsewhere kernels start one after the other, as ever, and nobody waits.
#pragma once

#include "device/launch.h"

// launch(), for a kernel all of whose threads call grid_dependency_wait(). It may start when every thread block of the
// kernel before it has ended, but what these wrote need not be in sight yet. (Sooner, if that kernel executed
// griddepcontrol.launch_dependents, as none does here: then what it still reads could be overwritten as well, and the
// engine would not notice.) The kernel before it need not be one of the same call. But each kernel waits for that one
// alone: so one that is launched like this has to wait even if it needs nothing of what was before.
template <class... Params, class... Args>
void launch_dependent(void (*kernel)(Params...), const LaunchConfig& config, Args&&... args) {
  launch_grid(kernel, config, Blocks::dependent, std::forward<Args>(args)...);
}

// Waits until the kernel before this one has ended and all that it wrote is seen. In a kernel that launch() launched,
// it returns at once.
#if defined(WORKBOOK_SIMT)
inline void grid_dependency_wait(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::grid_dependency_wait(file, line);
}
#elif defined(__CUDACC__)
__device__ inline void grid_dependency_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#endif
