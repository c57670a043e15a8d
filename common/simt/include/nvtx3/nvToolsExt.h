// As in CUDA: what a file from elsewhere includes.
#pragma once

#include <nvToolsExt.h>
