// CUDA's own names, from whoever provides them: the CUDA toolkit, or the SIMT engine in common/simt where there
// is none (the presets without CUDA define WORKBOOK_SIMT). Nothing outside common/device and common/simt asks
// which of the two it is.
#pragma once

#ifdef WORKBOOK_SIMT
#include "simt/cuda.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif
