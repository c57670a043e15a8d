// Between the Recorder, which counts by instruction, and counts.h, which reports by source line.
#pragma once

#include <vector>

#include "simt/counts.h"

namespace simt {

struct Counted {
  const void* pc;  // the return address of the compiler's call for the access
  Op op;
  Counts counts;
};

bool collecting();  // between trace_begin() and trace_end()

// Keeps a finished launch, whose lines and kernel's name are filled in later.
void collect(LaunchCounts&& launch, const std::vector<Counted>& counted);

}  // namespace simt
