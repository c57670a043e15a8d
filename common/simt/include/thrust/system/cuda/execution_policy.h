// As in CUDA: what a file from elsewhere includes.
#pragma once

#include <thrust/system/cpp/execution_policy.h>
