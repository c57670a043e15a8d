// CUDA on the CPU: everything that kernels and their host code use of CUDA, under its own names. See README.md.
#pragma once

#include <cassert>  // assert and printf in kernels, and the limits of numbers, which come with CUDA's own header
#include <cfloat>
#include <climits>
#include <cstdio>

#include "simt/cuda/atomics.h"
#include "simt/cuda/half.h"
#include "simt/cuda/math.h"
#include "simt/cuda/runtime.h"
#include "simt/cuda/thread.h"
#include "simt/cuda/vectors.h"
#include "simt/engine/launch.h"
#include "simt/engine/types.h"
#include "simt/hopper/hopper.h"
#if defined(SIMT_FRONT) && defined(SIMT_TRACED)
#include "simt/cuda/bytes.h"
#endif
