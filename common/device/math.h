// Base-2 exponential and logarithm in one instruction each, sums and maxima over the lanes of a warp, and two
// constants.
#pragma once

#include <cmath>
#include <cstdint>

#include "device/cuda.h"

constexpr float log2_e = 1.44269504f;  // exp(x) = 2^(log2(e) x)
constexpr float ln_2 = 0.693147181f;   // log(x) = ln(2) log2(x)

// 2^x; 0 for -inf. Relative error at most 2^-22; results below 2^-126 become 0 on the GPU. (PTX ISA, ex2.approx.)
// Kernels work in base 2 because this is what the hardware has.
__device__ inline float exp2_approx(float x) {
#ifdef WORKBOOK_SIMT
  return exp2f(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

// 2^x without the exp unit, for x < 128; 0 for -inf, and for NaN, too. Relative error at most 8.6e-5, where rounding to
// fp16 makes up to 4.9e-4; results below 2^-126 are wrong by up to 2^-126. x = n + f with a whole n and 0 <= f < 1.
// Between 2^23 and 2^24, where `magic` is, floats are the whole numbers: adding it rounds x down to n, which stands in
// the lowest bits of the sum. 2^f is between 1 and 2, and n is added to its exponent: for n = -127 what is left of
// 2^0 = 1 is 0. (A maximum, three FADD, three FFMA, and a shift that adds, where ex2.approx is one MUFU.)
__device__ inline float exp2_polynomial(float x) {
  constexpr float magic = 12582912;  // 1.5 * 2^23
  x = fmaxf(x, -127);
#ifdef WORKBOOK_SIMT
  const float sum = floorf(x) + magic;
#else
  const float sum = __fadd_rd(x, magic);
#endif
  const float f = x - (sum - magic);
  const float power = fmaf(fmaf(fmaf(0.0770670399f, f, 0.227644995f), f, 0.695116758f), f, 1.f);
  return __int_as_float(int(uint32_t(__float_as_int(power)) + (uint32_t(__float_as_int(sum)) << 23)));
}

// log2(x); -inf for 0. Error at most 2^-22, absolute for x in (0.5, 2) and relative elsewhere. (PTX ISA, lg2.approx.)
__device__ inline float log2_approx(float x) {
#ifdef WORKBOOK_SIMT
  return log2f(x);
#else
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

// 1 / x. Relative error at most 2^-23. (PTX ISA, rcp.approx.)
__device__ inline float reciprocal_approx(float x) {
#ifdef WORKBOOK_SIMT
  return 1 / x;
#else
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

// Reductions over the 32 lanes of a warp, or over its quads (lanes 4i..4i+3, the group of an mma fragment's row).
// Every lane calls them and every lane gets the result, added up in the same order on every lane of a group: the
// partners of a step hold the same two operands, and a + b = b + a.
__device__ inline float warp_sum(float x) {
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffff, x, distance);
  return x;
}

__device__ inline float warp_max(float x) {
  for (int distance = 16; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, distance));
  return x;
}

__device__ inline float quad_sum(float x) {
  for (int distance = 2; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffff, x, distance);
  return x;
}

__device__ inline float quad_max(float x) {
  for (int distance = 2; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, distance));
  return x;
}
