// Streams that wait for one another, and events that are asked instead of waited for: CUDA's names, which only programs
// with several streams use.
#pragma once

#include "device/cuda.h"
#ifdef WORKBOOK_SIMT
#include "simt/cuda/host.h"
#endif
