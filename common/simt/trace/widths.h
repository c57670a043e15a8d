// How wide nvcc made the accesses of a source line. It puts neighbours together that g++ leaves apart, where it can
// prove how they are aligned: 8 floats of shared memory, read one by one, are two accesses of 16 bytes.
//
// The variable SIMT_WIDTHS names a file, which the tools make from the machine code of nvcc. Each of its lines has a
// place, what is done there, and the bytes of the widest such instruction: "sgemm/mine.cu:42 shared_load 16".
#pragma once

#include "simt/trace/counts.h"

namespace simt {

// For the instruction before this return address; 0 if nothing is known.
unsigned widest(const void* pc, Op op);

}  // namespace simt
