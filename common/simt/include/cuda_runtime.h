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
