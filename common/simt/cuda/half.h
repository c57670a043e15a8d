// fp16 (1 sign, 5 exponent, 10 mantissa bits) and bf16 (1, 8, 7) storage under CUDA's names. Conversions from
// float round to nearest, ties to even, and agree with CUDA's to the bit, subnormals, infinities and NaN included.
// Arithmetic is CUDA's: computed in fp32, rounded once to the storage type.
//
// Default construction leaves the bits alone, so that `__shared__ __half tile[...]` needs no constructor.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "simt/engine/types.h"

namespace simt {

inline std::uint16_t half_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = bits >> 16 & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fff;          // NaN: CUDA's one NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and above round to infinity
  if (magnitude < 0x38800000) {                       // below 2^-14: a multiple of 2^-24
    // Adding 0.5 moves that last place to the last place of a float in [0.5, 1): the addition does the rounding.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(sum) - 0x3f000000);
  }
  const std::uint32_t odd = magnitude >> 13 & 1;
  return sign | static_cast<std::uint16_t>((magnitude - 0x38000000 + 0xfff + odd) >> 13);  // exponent bias 127 to 15
}

// The value of every fp16, by its bits. Looked up, because kernels on the engine spend much of their time with it, and
// to calculate it takes three times as long.
extern const struct HalfValues { float of[1 << 16]; } half_values;

inline float half_value(std::uint16_t bits) { return half_values.of[bits]; }

inline std::uint16_t bfloat16_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;  // NaN: CUDA's one NaN
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float bfloat16_value(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace simt

struct __half {
  std::uint16_t bits;

  __half() = default;
  __half(float value) : bits(simt::half_bits(value)) {}
  operator float() const { return simt::half_value(bits); }
  __half& operator=(float value) { return *this = __half(value); }
};

struct __nv_bfloat16 {
  std::uint16_t bits;

  __nv_bfloat16() = default;
  __nv_bfloat16(float value) : bits(simt::bfloat16_bits(value)) {}
  operator float() const { return simt::bfloat16_value(bits); }
  __nv_bfloat16& operator=(float value) { return *this = __nv_bfloat16(value); }
};

struct alignas(4) __half2 {
  __half x, y;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

namespace simt {
template <>
inline constexpr bool is_shuffled<__half> = true;
template <>
inline constexpr bool is_shuffled<__half2> = true;
template <>
inline constexpr bool is_shuffled<__nv_bfloat16> = true;
template <>
inline constexpr bool is_shuffled<__nv_bfloat162> = true;
}  // namespace simt

using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline __half __ushort_as_half(unsigned short bits) { return std::bit_cast<__half>(bits); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return std::bit_cast<__nv_bfloat16>(bits); }

inline __half __float2half(float x) { return x; }
inline __half __float2half_rn(float x) { return x; }
// Towards zero, up, down: the nearest one, or its neighbour.
inline __half __float2half_rz(float x) {
  const __half near = x;
  const bool beyond = std::fabs(float(near)) > std::fabs(x);
  return beyond ? __ushort_as_half(static_cast<unsigned short>(near.bits - 1)) : near;
}
inline __half __float2half_ru(float x) {
  const __half down = __float2half_rz(x);
  if (!(float(down) < x)) return down;  // below zero, towards zero is up
  return __ushort_as_half(static_cast<unsigned short>(down.bits + 1));
}
inline __half __float2half_rd(float x) {
  const __half up = __float2half_rz(x);
  if (!(float(up) > x)) return up;
  return __ushort_as_half(static_cast<unsigned short>(up.bits + 1));
}
inline float __half2float(const __half& x) { return x; }  // a reference: see to_float() of device/numeric.h
inline __nv_bfloat16 __float2bfloat16(float x) { return x; }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
inline float __bfloat162float(const __nv_bfloat16& x) { return x; }

inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline __half2 __float22half2_rn(float2 v) { return {v.x, v.y}; }
inline __half2 __float2half2_rn(float x) { return {x, x}; }
inline float2 __half22float2(__half2 v) { return {v.x, v.y}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }

inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
inline __nv_bfloat162 __float2bfloat162_rn(float x) { return {x, x}; }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {v.x, v.y}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
inline float __low2float(__nv_bfloat162 v) { return v.x; }
inline float __high2float(__nv_bfloat162 v) { return v.y; }

inline bool __hisnan(__half x) { return std::isnan(float(x)); }
inline bool __hisnan(__nv_bfloat16 x) { return std::isnan(float(x)); }

// A sum, product or quotient of two 11-bit mantissas rounded to fp32 and then to fp16 (or bf16) is rounded as if
// once: 24 >= 2 * 11 + 2 bits (Figueroa, "When is double rounding innocuous?", 1995).
inline __half operator+(__half a, __half b) { return float(a) + float(b); }
inline __half operator-(__half a, __half b) { return float(a) - float(b); }
inline __half operator*(__half a, __half b) { return float(a) * float(b); }
inline __half operator/(__half a, __half b) { return float(a) / float(b); }
inline __half operator-(__half a) { return __ushort_as_half(a.bits ^ 0x8000); }
inline __half& operator+=(__half& a, __half b) { return a = a + b; }
inline __half& operator-=(__half& a, __half b) { return a = a - b; }
inline __half& operator*=(__half& a, __half b) { return a = a * b; }
inline __half& operator/=(__half& a, __half b) { return a = a / b; }
inline bool operator==(__half a, __half b) { return float(a) == float(b); }
inline bool operator!=(__half a, __half b) { return float(a) != float(b); }
inline bool operator<(__half a, __half b) { return float(a) < float(b); }
inline bool operator>(__half a, __half b) { return float(a) > float(b); }
inline bool operator<=(__half a, __half b) { return float(a) <= float(b); }
inline bool operator>=(__half a, __half b) { return float(a) >= float(b); }

inline __nv_bfloat16 operator+(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) + float(b); }
inline __nv_bfloat16 operator-(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) - float(b); }
inline __nv_bfloat16 operator*(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) * float(b); }
inline __nv_bfloat16 operator/(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) / float(b); }
inline __nv_bfloat16 operator-(__nv_bfloat16 a) { return __ushort_as_bfloat16(a.bits ^ 0x8000); }
inline __nv_bfloat16& operator+=(__nv_bfloat16& a, __nv_bfloat16 b) { return a = a + b; }
inline __nv_bfloat16& operator-=(__nv_bfloat16& a, __nv_bfloat16 b) { return a = a - b; }
inline __nv_bfloat16& operator*=(__nv_bfloat16& a, __nv_bfloat16 b) { return a = a * b; }
inline __nv_bfloat16& operator/=(__nv_bfloat16& a, __nv_bfloat16 b) { return a = a / b; }
inline bool operator==(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) == float(b); }
inline bool operator!=(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) != float(b); }
inline bool operator<(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) < float(b); }
inline bool operator>(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) > float(b); }
inline bool operator<=(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) <= float(b); }
inline bool operator>=(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) >= float(b); }
