// What a program that the user wrote tells ./workbook when it ends, without knowing of it: the environment variable
// SIMT_REPORT names a file for its launches (with their counts, if its kernels are traced) and their failures, as JSON;
// SIMT_PARENT is the process that started it, with which it ends.
#pragma once

namespace simt {

bool report_when_it_ends(const char* header);  // this one's path; true
void prints();                                 // device code does, if it is in a kernel
void text_read(const char* text);  // and this is a text that it prints: to be called by kernels that are traced

// Included in every such program.
inline const bool reports = report_when_it_ends(__FILE__);

}  // namespace simt
