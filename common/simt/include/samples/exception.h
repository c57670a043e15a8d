// A name that NVIDIA's samples include.
#pragma once

#include <stdexcept>
