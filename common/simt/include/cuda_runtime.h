// What nvcc includes by itself: CUDA's names for a file from elsewhere. See simt/README.md.
#pragma once

#include "simt/chevrons.h"
#include "simt/cuda.h"
#include "simt/host.h"
#include "simt/intrinsics.h"
#include "simt/ptx.h"
#include "simt/variables.h"
#include "simt/vectors.h"
#include "simt/warp.h"

// By these, code from elsewhere knows that it has included the runtime, and which.
#define __CUDA_RUNTIME_H__
#define __DRIVER_TYPES_H__
#define CUDART_VERSION 13000
