// Programs rely on what CUDA's system includes beside it.
#pragma once

#include_next <thrust/device_vector.h>
#include <thrust/execution_policy.h>
