// CUDA on the CPU: everything that kernels and their host code use of CUDA, under its own names. See README.md.
#pragma once

#include <cstdio>  // printf in kernels

#include "simt/atomics.h"
#include "simt/half.h"
#include "simt/hopper.h"
#include "simt/launch.h"
#include "simt/math.h"
#include "simt/runtime.h"
#include "simt/thread.h"
#include "simt/types.h"
