// As in CUDA: what a file from elsewhere includes.
#pragma once

#include <cuda_runtime.h>

#include "simt/cuda/half_arithmetic.h"
