// As in CUDA: what a file from elsewhere includes.
#pragma once

#include "simt/libraries/cub/cub.h"
