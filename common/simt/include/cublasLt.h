// Not part of the engine: what a file uses of it, it does not find. Many include it for nothing.
#pragma once

#include <cuda_runtime.h>
