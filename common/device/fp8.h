// Numbers of eight bits: e4m3 has 1 sign, 4 exponent and 3 mantissa bits, e5m2 has 1, 5 and 2. CUDA Math API, "FP8
// Intrinsics". Instructions of compute capability 8.9 and later; elsewhere CUDA calculates.
//
//               largest   least normal   least above 0   infinities   NaN
//   e4m3          448         2^-6            2^-9        none       0x7f and 0xff
//   e5m2        57344        2^-14           2^-16        yes        three mantissas of the largest exponent
#pragma once

#include <cmath>
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

// A tile's scale is a power of two: then scaling rounds nothing, and it is no worse, since e4m3 has three bits behind
// the leading one at any size. The largest element becomes more than 224, and at most 448.
__host__ __device__ inline float tile_scale(float largest) {
  largest = fmaxf(largest, smallest_divisor);
  const int exponent = ilogbf(largest);
  return ldexpf(1, exponent - 8 + (largest > ldexpf(1.75f, exponent)));
}

// The signs of its rows, by which a Hadamard matrix looks random: a set bit is a minus, word i has columns 32 i to
// 32 i + 31. They are the digits of the golden ratio.
__host__ __device__ constexpr uint32_t hadamard_signs(int word) {
  constexpr uint32_t words[] = {0x9e3779b9, 0x7f4a7c15, 0xf39cc060, 0x5cedc834,
                                0x1082276b, 0xf3a27251, 0xf86c6a11, 0xd0c18e95};
  return words[word];
}

// One step of the fast transform: a, b become a + b, a - b.
__host__ __device__ inline void hadamard_step(float& a, float& b) {
  const float sum = a + b;
  b = a - b, a = sum;
}

// The steps for a row of D elements, and their order, as distances of the two elements. Sums in another order would be
// rounded otherwise.
template <int D>
constexpr int hadamard_steps = D == 64    ? 6
                               : D == 128 ? 7
                                          : 8;
template <int D>
__host__ __device__ constexpr int hadamard_distance(int step) {
  constexpr int last = hadamard_steps<D> - 2;  // two steps between lanes
  return step < 3 ? 1 << step : step < last ? 32 << (step - 3) : 8 << (step - last);
}

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
