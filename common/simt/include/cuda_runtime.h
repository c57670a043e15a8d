// CUDA's runtime, from the engine.
#pragma once

#include "simt/cuda.h"
