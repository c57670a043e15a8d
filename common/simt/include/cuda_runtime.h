// What nvcc includes by itself: CUDA's names for a file from elsewhere. See simt/README.md.
#pragma once

#ifndef __cplusplus
#include "simt/cuda/runtime_api.h"
#else
#include "simt/cuda.h"
#include "simt/cuda/host.h"
#include "simt/cuda/intrinsics.h"
#include "simt/cuda/launch_syntax.h"
#include "simt/cuda/packed.h"
#include "simt/cuda/vectors.h"
#include "simt/cuda/warp.h"
#include "simt/engine/device_variables.h"
#include "simt/ptx/ptx.h"
#endif

// By these, code from elsewhere knows that it has included the runtime, and which.
#define __CUDA_RUNTIME_H__
#define __DRIVER_TYPES_H__
#define CUDART_VERSION 13000
