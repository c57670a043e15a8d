// cuBLAS under its old header's name.
#pragma once

#include <cublas_v2.h>
