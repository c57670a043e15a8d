// Numbers of eight bits: e4m3 (1 sign, 4 exponent, 3 mantissa bits; no infinities, at most 448) and e5m2 (1, 5, 2; at
// most 57344), under CUDA's names. Conversions round to nearest, ties to even.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "simt/cuda/conversions.h"
#include "simt/cuda/half.h"

using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;
using __nv_fp8x4_storage_t = unsigned;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace simt {

// What is beyond the largest number, infinities included, becomes that number if the
// conversion is saturating; else NaN (e4m3) or infinity (e5m2).
inline unsigned char fp8_bits(double value, __nv_saturation_t saturation, __nv_fp8_interpretation_t type) {
  const bool e4m3 = type == __NV_E4M3;
  const int mantissa = e4m3 ? 3 : 2, least = e4m3 ? -6 : -14;  // the least normal number's exponent
  const double most = e4m3 ? 448 : 57344;
  const unsigned char sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return e4m3 ? sign | 0x7f : 0x7f;
  double size = std::fabs(value);
  int exponent = least;
  if (size > 0 && std::isfinite(size)) exponent = std::max(std::ilogb(size), least);
  if (std::isfinite(size))
    size = std::ldexp(std::nearbyint(std::ldexp(size, mantissa - exponent)), exponent - mantissa);
  if (size > most) {
    if (saturation == __NV_SATFINITE) return sign | (e4m3 ? 0x7e : 0x7b);
    return e4m3 ? sign | 0x7f : sign | 0x7c;
  }
  if (size == 0) return sign;
  exponent = std::max(std::ilogb(size), least);                               // may have grown by rounding
  const int steps = static_cast<int>(std::ldexp(size, mantissa - exponent));  // with the leading 1, if it is normal
  return static_cast<unsigned char>(sign | (((exponent - least) << mantissa) + steps));
}

inline float fp8_value(unsigned char bits, __nv_fp8_interpretation_t type) {
  const bool e4m3 = type == __NV_E4M3;
  const int mantissa = e4m3 ? 3 : 2, least = e4m3 ? -6 : -14;
  const int exponent = (bits & 0x7f) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (e4m3 ? (bits & 0x7f) == 0x7f : exponent == 31 && fraction != 0) return NAN;
  if (!e4m3 && exponent == 31) return sign * INFINITY;
  const int steps = exponent == 0 ? fraction : fraction | 1 << mantissa;
  return sign * std::ldexp(static_cast<float>(steps), (exponent == 0 ? 0 : exponent - 1) + least - mantissa);
}

}  // namespace simt

inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturation, __nv_fp8_interpretation_t type) {
  return simt::fp8_bits(x, saturation, type);
}
inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturation,
                                                 __nv_fp8_interpretation_t type) {
  return simt::fp8_bits(x, saturation, type);
}
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturation,
                                                     __nv_fp8_interpretation_t type) {
  return static_cast<__nv_fp8x2_storage_t>(simt::fp8_bits(x.x, saturation, type) | simt::fp8_bits(x.y, saturation, type)
                                                                                       << 8);
}
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half x, __nv_saturation_t saturation,
                                                  __nv_fp8_interpretation_t type) {
  return simt::fp8_bits(static_cast<float>(x), saturation, type);
}
inline __half __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t type) {
  return __half(simt::fp8_value(x, type));
}

#define SIMT_FP8(Type, type)                                                                                          \
  struct __nv_fp8_##Type {                                                                                            \
    __nv_fp8_storage_t __x;                                                                                           \
    __nv_fp8_##Type() = default;                                                                                      \
    template <class Number>                                                                                           \
    explicit __nv_fp8_##Type(Number x)                                                                                \
        : __x(simt::fp8_bits(static_cast<double>(static_cast<simt::WideOf<Number>>(x)), __NV_SATFINITE, type)) {}     \
    explicit operator float() const { return simt::fp8_value(__x, type); }                                            \
    explicit operator double() const { return simt::fp8_value(__x, type); }                                           \
    explicit operator __half() const { return __half(simt::fp8_value(__x, type)); }                                   \
    explicit operator __nv_bfloat16() const { return __nv_bfloat16(simt::fp8_value(__x, type)); }                     \
    explicit operator int() const { return simt::to_integer<int>(simt::fp8_value(__x, type)); }                       \
    explicit operator bool() const { return (__x & 0x7f) != 0; }                                                      \
  };                                                                                                                  \
  struct alignas(2) __nv_fp8x2_##Type {                                                                               \
    __nv_fp8x2_storage_t __x;                                                                                         \
    __nv_fp8x2_##Type() = default;                                                                                    \
    explicit __nv_fp8x2_##Type(float2 x) : __x(__nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, type)) {}                  \
    explicit operator float2() const {                                                                                \
      return {simt::fp8_value(__x & 0xff, type), simt::fp8_value(static_cast<unsigned char>(__x >> 8), type)};        \
    }                                                                                                                 \
  };                                                                                                                  \
  struct alignas(4) __nv_fp8x4_##Type {                                                                               \
    __nv_fp8x4_storage_t __x;                                                                                         \
    __nv_fp8x4_##Type() = default;                                                                                    \
    explicit __nv_fp8x4_##Type(float4 x)                                                                              \
        : __x(__nv_cvt_float2_to_fp8x2({x.x, x.y}, __NV_SATFINITE, type) |                                            \
              static_cast<unsigned>(__nv_cvt_float2_to_fp8x2({x.z, x.w}, __NV_SATFINITE, type)) << 16) {}             \
    explicit operator float4() const {                                                                                \
      return {simt::fp8_value(__x & 0xff, type), simt::fp8_value(__x >> 8 & 0xff, type),                              \
              simt::fp8_value(__x >> 16 & 0xff, type), simt::fp8_value(static_cast<unsigned char>(__x >> 24), type)}; \
    }                                                                                                                 \
  };

namespace simt {
template <class T>
struct Wide {
  using Type = T;
};
template <>
struct Wide<__half> {
  using Type = float;
};
template <>
struct Wide<__nv_bfloat16> {
  using Type = float;
};
template <class T>
using WideOf = typename Wide<T>::Type;
}  // namespace simt

SIMT_FP8(e4m3, __NV_E4M3)
SIMT_FP8(e5m2, __NV_E5M2)
#undef SIMT_FP8
