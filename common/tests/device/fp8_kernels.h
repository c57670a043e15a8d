// Kernels around the wrappers for numbers of eight bits, as plain functions from inputs to outputs. See kernels.h.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels.h"

namespace device_tests {

enum class Fp8 { e4m3, e5m2 };
using Bytes = std::vector<uint8_t>;

// What pack4 makes of numbers, whose number is a multiple of 4.
Bytes packed_fp8(Fp8 type, const Floats& numbers);

// D [64, N] of a product of a warpgroup: A [64, 32] B^T [N, 32], and D as it was before if `accumulate`. A and B are
// given to it as part of rows of NaN, of 64 or 128 bytes: `step` is which 32 of them.
struct Fp8ProductCase {
  Fp8 type;
  int columns, row_bytes;
  bool a_in_registers;
};
const std::vector<Fp8ProductCase>& fp8_product_cases();
Floats product(const Fp8ProductCase& of, const Bytes& a, const Bytes& b, const Floats& d, bool accumulate, int step);

}  // namespace device_tests
