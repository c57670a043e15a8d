// What is known of the last failure. A message of the engine takes the place of the own one of CUDA's code.
#pragma once

#include <string>
#include <vector>

#include "simt/cuda/runtime_api.h"

namespace simt {

// Makes this the last error of the calling OS thread, with the message that cudaGetErrorString gives.
cudaError_t fail(cudaError_t code, std::string message);

// For programs from elsewhere, where after a mistake in a kernel every call fails, as on a GPU: that mistake, or
// cudaSuccess if there was none.
cudaError_t broken();
// While this lives, the thread runs a function that a stream calls (cudaLaunchHostFunc): CUDA's calls fail there.
struct InHostFunction {
  InHostFunction();
  ~InHostFunction();
  InHostFunction(const InHostFunction&) = delete;
  InHostFunction& operator=(const InHostFunction&) = delete;
};
void breaks(cudaError_t error);

cudaError_t last_failure();  // the code of the last call of fail()

// Around a call of the runtime, by name, whose error the program throws away (findings.h).
void discarding();
void discarded(const char* name, const char* file = __builtin_FILE(), int line = __builtin_LINE());

// The messages of their failed launches.
void note_failed_launch(const std::string& message);
const std::vector<std::string>& failed_launches();

}  // namespace simt
