// As in CUDA: what a file from elsewhere includes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "simt/cuda/fp8.h"
