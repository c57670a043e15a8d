// Kernels that nobody has read run in a process of their own, for ./workbook grade: on the engine a kernel can read and
// write all memory of its process. This is the side of the program that judges them. The other side, and what keeps it
// apart, is common/harness/judge.
//
// The two share nothing but a socket. A request has the problem and the whole device memory; the answer has the same
// memory as the kernels left it, a message, and counts: raw numbers, of sizes that are known before they are read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/rung.h"
#ifdef WORKBOOK_SIMT
#include "simt/engine/launch.h"
#include "simt/trace/counts.h"
#endif

namespace harness {

#ifdef WORKBOOK_SIMT

// The same pass, run in that process if ./workbook grade has started one (it names the socket in WORKBOOK_KERNELS). An
// exception that it throws there is thrown here; if that process ends, so does this one. From the first call on, no
// other process can look into this one.
attention::Forward in_kernel_process(const attention::Forward& pass);
attention::Backward in_kernel_process(const attention::Backward& pass);
bool kernels_are_apart();  // has it started one?

// What goes over the socket. Both ends are built by the same compiler from the same headers.
namespace kernel_process {

struct Request {
  attention::Problem problem = {};
  bool backward = false;
  attention::ForwardArgs forward_args = {};    // either these
  attention::BackwardArgs backward_args = {};  // or those
  simt::Schedule schedule = {};
  size_t max_shared = 0;
  bool count = false;
  uintptr_t first_address = 0;  // of the device's memory: the same in both processes, for pointers point into it
  size_t allocations = 0;       // which follow, and then their bytes
};

enum class Ended : uint32_t { well, with_a_cuda_error, with_another_error };

constexpr size_t longest_message = 1024, most_launches = 256, longest_name = 120;

struct Launch {
  char kernel[longest_name + 1];
  dim3 grid, block;
  uint64_t dynamic_shared_bytes, barriers, shuffles, matrix_flops, matrix_flops_alone;
  bool knows_alone;
  simt::ForExercises for_exercises;
  simt::Traffic read, written;
  simt::Counts totals[simt::op_count];
};

struct Answer {
  Ended ended;
  cudaError_t code;
  uint32_t launches;  // at most most_launches; they follow, behind the bytes of the allocations
  char message[longest_message + 1];
};

}  // namespace kernel_process

#else  // on a GPU kernels see none of the host's memory

inline bool kernels_are_apart() { return false; }
inline const attention::Forward& in_kernel_process(const attention::Forward& pass) { return pass; }
inline const attention::Backward& in_kernel_process(const attention::Backward& pass) { return pass; }

#endif
}  // namespace harness
