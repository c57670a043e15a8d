// CUDA's built-in variables.
#pragma once

#include "simt/engine/types.h"

// Set by the engine whenever it switches to another thread. A CUDA thread never changes its OS thread.
#define SIMT_PER_OS_THREAD extern constinit thread_local __attribute__((tls_model("initial-exec")))
SIMT_PER_OS_THREAD uint3 threadIdx;
SIMT_PER_OS_THREAD uint3 blockIdx;
SIMT_PER_OS_THREAD dim3 blockDim;
SIMT_PER_OS_THREAD dim3 gridDim;
#undef SIMT_PER_OS_THREAD
constexpr int warpSize = 32;
