// What a program that the user wrote tells ./workbook when it ends, without knowing of it: the environment variable
// SIMT_REPORT names a file for its launches (with their counts, if its kernels are traced) and their failures, as JSON;
// SIMT_PARENT is the process that started it, with which it ends.
#pragma once

namespace simt {

bool report_when_it_ends();  // true
bool kernels_allocate();     // true: for files whose kernels do (host_ranges.h)
void prints();               // device code does, if it is in a kernel

// Included in every such program.
inline const bool reports = report_when_it_ends();

}  // namespace simt
