// CUB: what teaching programs call, in words of our own, with the names and results of the original (NVIDIA's CCCL).
// Sums of floats over the whole device are rounded as a loop's, not as a GPU's.
#pragma once

// Programs rely on what the original includes.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda/functional>
#include <iostream>
#include <iterator>
#include <limits>

#include "simt/libraries/cub/device.h"
