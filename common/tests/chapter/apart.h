// Kernels in a process of their own, for ./workbook grade: on the engine a kernel can read all memory of its process,
// and in the one that judges it that is what it should have computed.
#pragma once

#include "attention/rung.h"

namespace chapter_suite {

// Starts that process. It has the device's memory, and nothing that is made after this. Does nothing where the engine
// traces, for then no result is compared with anything, nor on a GPU.
void keep_kernels_apart();

// The same pass, run in that process, if there is one: what it throws is thrown here, and if it crashes we do too.
attention::Forward apart(const attention::Forward& pass);
attention::Backward apart(const attention::Backward& pass);

}  // namespace chapter_suite
