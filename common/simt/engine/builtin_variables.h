// CUDA's built-in variables.
#pragma once

#include "simt/engine/types.h"

// Set by the engine whenever it switches to another thread. A CUDA thread never changes its OS thread.
//
// Neither these nor the engine's other thread-local variables have tls_model("initial-exec"): a library of kernels
// could then not be loaded late, by dlopen, for static thread storage is too small for its shared memory. In a program
// the linker makes that of them anyway.
extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;
constexpr int warpSize = 32;
