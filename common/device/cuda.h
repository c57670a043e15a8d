// CUDA's own names, from whoever provides them: the CUDA toolkit, or the SIMT engine in common/simt where there
// is none (the presets without CUDA define WORKBOOK_SIMT). Outside common/device, common/simt and their tests, what
// must know which of the two it is asks `on_gpu`.
#pragma once

#ifdef WORKBOOK_SIMT
#include "simt/cuda.h"
inline constexpr bool on_gpu = false;
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
inline constexpr bool on_gpu = true;
#endif
