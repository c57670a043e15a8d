// Numbers of eight bits: e4m3 has 1 sign, 4 exponent and 3 mantissa bits, e5m2 has 1, 5 and 2. CUDA Math API, "FP8
// Intrinsics". Instructions of compute capability 8.9 and later; elsewhere CUDA calculates.
//
//               largest   least normal   least above 0   infinities   NaN
//   e4m3          448         2^-6            2^-9        none       0x7f and 0xff
//   e5m2        57344        2^-14           2^-16        yes        three mantissas of the largest exponent
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/cuda.h"
#include "device/numeric.h"

#ifdef WORKBOOK_SIMT
#include "simt/cuda/fp8.h"
#else
#include <cuda_fp8.h>
#endif

constexpr float largest_e4m3 = 448;

// A tensor is divided by its scale, its largest element / 448, so that the largest becomes 448. Not by less than this,
// or the inverse of the scale would be infinite.
constexpr float smallest_divisor = 0x1p-100f;

__host__ __device__ inline float to_float(const __nv_fp8_e4m3& x) { return float(x); }
__host__ __device__ inline float to_float(const __nv_fp8_e5m2& x) { return float(x); }

// Rounds to nearest, ties to even. What is beyond the largest number becomes that, infinities too. NaN stays NaN.
template <>
__host__ __device__ inline __nv_fp8_e4m3 from_float<__nv_fp8_e4m3>(float x) {
  return __nv_fp8_e4m3(x);
}
template <>
__host__ __device__ inline __nv_fp8_e5m2 from_float<__nv_fp8_e5m2>(float x) {
  return __nv_fp8_e5m2(x);
}

// Four numbers in one register, the first one in the lowest byte, rounded so. Two instructions of sm_90, cvt.rn.
// satfinite.e4m3x2.f32, of which the second one keeps what the first has made.
template <class T>
__device__ inline uint32_t pack4(float x0, float x1, float x2, float x3) {
  constexpr auto type = std::is_same_v<T, __nv_fp8_e4m3> ? __NV_E4M3 : __NV_E5M2;
  return uint32_t(__nv_cvt_float2_to_fp8x2(make_float2(x0, x1), __NV_SATFINITE, type)) |
         uint32_t(__nv_cvt_float2_to_fp8x2(make_float2(x2, x3), __NV_SATFINITE, type)) << 16;
}
