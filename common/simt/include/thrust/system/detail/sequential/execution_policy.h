// What every algorithm of Thrust includes: its loops run on the host, and may touch device memory.
#pragma once

#include_next <thrust/system/detail/sequential/execution_policy.h>
#include <thrust/system_error.h>

// Programs rely on what CUDA's system includes.
#include <chrono>
#include <iostream>

#include "simt/cuda/thrust.h"

namespace simt {
inline const bool program_uses_thrust = open_device_memory();
}
