// What the bits of a 16-bit floating-point number mean, from the definition of the formats and nothing else: the
// conversions under test are compared with this.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels.h"

namespace device_tests {

// IEEE 754 binary16, and bfloat16: the upper half of a binary32.
inline int mantissa_bits(DType dtype) { return dtype == DType::fp16 ? 10 : 7; }
inline int exponent_bits(DType dtype) { return 15 - mantissa_bits(dtype); }
inline uint16_t infinity_bits(DType dtype) {
  return uint16_t(((1 << exponent_bits(dtype)) - 1) << mantissa_bits(dtype));
}
inline bool is_nan(DType dtype, uint16_t bits) { return (bits & 0x7fff) > infinity_bits(dtype); }

// The value of finite bits without their sign. Infinity's bits give the number that would come after the largest:
// rounding to nearest takes infinity for that.
inline double magnitude(DType dtype, uint16_t bits) {
  const int exponent = (bits & 0x7fff) >> mantissa_bits(dtype);
  const int mantissa = bits & ((1 << mantissa_bits(dtype)) - 1);
  const int bias = (1 << (exponent_bits(dtype) - 1)) - 1;
  if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits(dtype));
  return std::ldexp(mantissa + (1 << mantissa_bits(dtype)), exponent - bias - mantissa_bits(dtype));
}

inline float value(DType dtype, uint16_t bits) {
  if (is_nan(dtype, bits)) return std::numeric_limits<float>::quiet_NaN();
  const double x =
      (bits & 0x7fff) == infinity_bits(dtype) ? std::numeric_limits<double>::infinity() : magnitude(dtype, bits);
  return float(bits & 0x8000 ? -x : x);
}

// The bits of an integer from 0 to 256, which both formats hold exactly.
inline uint16_t integer_bits(DType dtype, int x) {
  if (x == 0) return 0;
  const int exponent = std::ilogb(x), bias = (1 << (exponent_bits(dtype) - 1)) - 1;
  const int mantissa = int(std::ldexp(x, mantissa_bits(dtype) - exponent)) - (1 << mantissa_bits(dtype));
  return uint16_t((exponent + bias) << mantissa_bits(dtype) | mantissa);
}

}  // namespace device_tests
