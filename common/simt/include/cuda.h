// The driver's interface is not part of the engine. Many include it for nothing.
#pragma once

#include <cuda_runtime.h>

#define CUDA_VERSION 13000
