// A process of their own for kernels that nobody has read, for ./workbook grade: on the engine a kernel can read all
// memory of its process, and in the process that judges it that includes the results that it should compute.
#pragma once

#include "attention/rung.h"

namespace chapter_suite {

// Starts the process. It shares the device's memory with this one, and sees nothing that is made after this call. Does
// nothing where the engine traces, since no result is compared there, nor on a GPU.
void start_kernel_process();

// The same pass, run in that process, if there is one. An exception that it throws there is thrown here; if that
// process crashes, so does this one.
attention::Forward in_kernel_process(const attention::Forward& pass);
attention::Backward in_kernel_process(const attention::Backward& pass);

}  // namespace chapter_suite
