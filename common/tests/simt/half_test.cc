// Conversions of fp16 and bf16, every value and every rounding boundary, against the formats' definitions in double.
#include "simt/cuda/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace {

// An IEEE-like 16-bit format: value = (-1)^s 2^(e - bias) (1 + m / 2^mantissa_bits), subnormal for e = 0.
struct Format {
  int mantissa_bits;
  int bias;
  int smallest_exponent() const { return 1 - bias; }
  int largest_exponent() const { return bias; }
};
constexpr Format fp16 = {10, 15};
constexpr Format bf16 = {7, 127};

double value(Format f, int bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = (bits & 0x7fff) >> f.mantissa_bits;
  const int mantissa = bits & ((1 << f.mantissa_bits) - 1);
  if (exponent == 2 * f.bias + 1) return mantissa ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, f.smallest_exponent() - f.mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << f.mantissa_bits), exponent - f.bias - f.mantissa_bits);
}

// Rounds to the nearest value of the format, ties to the even mantissa, all in exact double arithmetic.
double rounded(Format f, double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), f.smallest_exponent());
  const double step = std::ldexp(1.0, exponent - f.mantissa_bits);
  const double result = std::nearbyint(x / step) * step;
  return std::abs(result) >= std::ldexp(1.0, f.largest_exponent() + 1) ? std::copysign(INFINITY, x) : result;
}

int to_bits(Format f, float x) {
  return f.bias == 15 ? __half_as_ushort(__float2half_rn(x)) : __bfloat16_as_ushort(__float2bfloat16_rn(x));
}
float from_bits(Format f, int bits) {
  return f.bias == 15 ? __half2float(__ushort_as_half(bits)) : __bfloat162float(__ushort_as_bfloat16(bits));
}

void expect_rounds(Format f, float x) {
  const int bits = to_bits(f, x);
  if (std::isnan(x)) {
    ASSERT_EQ(bits, 0x7fff);  // CUDA's one NaN, for both formats
    return;
  }
  ASSERT_EQ(value(f, bits), rounded(f, x)) << std::hexfloat << x;
  ASSERT_EQ((bits & 0x8000) != 0, std::signbit(x)) << std::hexfloat << x;
}

class Half : public testing::TestWithParam<Format> {};

TEST_P(Half, every_value_becomes_the_float_it_stands_for_and_comes_back) {
  const Format f = GetParam();
  for (int bits = 0; bits < 0x10000; ++bits) {
    const double expected = value(f, bits);
    const float converted = from_bits(f, bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(converted)) << std::hex << bits;
      ASSERT_EQ(to_bits(f, converted), 0x7fff);
      continue;
    }
    ASSERT_EQ(converted, expected) << std::hex << bits;
    ASSERT_EQ(std::signbit(converted), (bits & 0x8000) != 0) << std::hex << bits;
    ASSERT_EQ(to_bits(f, converted), bits);
  }
}

TEST_P(Half, rounds_to_nearest_even_at_and_beside_every_tie) {
  const Format f = GetParam();
  for (int bits = 0; bits < 0x8000; ++bits) {
    const double low = value(f, bits);
    if (!std::isfinite(low)) break;
    double high = value(f, bits + 1);
    if (!std::isfinite(high)) high = std::ldexp(1.0, f.largest_exponent() + 1);  // what infinity starts to round from
    const float tie = static_cast<float>((low + high) / 2);
    for (const float x : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, INFINITY)}) {
      expect_rounds(f, x);
      expect_rounds(f, -x);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Half, rounds_floats_from_everywhere) {
  for (std::uint64_t bits = 0; bits < 0x100000000; bits += 1021) {
    expect_rounds(GetParam(), std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(formats, Half, testing::Values(fp16, bf16),
                         [](auto& info) { return info.param.bias == 15 ? "fp16" : "bf16"; });

TEST(Half, nan_is_the_one_that_cuda_makes) {
  EXPECT_EQ(std::bit_cast<std::uint32_t>(__half2float(__ushort_as_half(0xfe01))), 0x7fffffffu);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(__bfloat162float(__ushort_as_bfloat16(0xff81))), 0xff810000u);
  EXPECT_TRUE(__hisnan(__ushort_as_half(0xffff)));
  EXPECT_TRUE(__hisnan(__ushort_as_bfloat16(0xffff)));
}

TEST(Half, pairs_keep_their_order) {
  const __half2 h = __floats2half2_rn(1.5f, -2.0f);
  EXPECT_EQ(__low2float(h), 1.5f);
  EXPECT_EQ(__high2float(h), -2.0f);
  EXPECT_EQ(__half22float2(h).x, 1.5f);
  EXPECT_EQ(__half22float2(h).y, -2.0f);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(h), 0xc0003e00u);  // x in the low half
  const __nv_bfloat162 b = __floats2bfloat162_rn(1.5f, -2.0f);
  EXPECT_EQ(__bfloat1622float2(b).x, 1.5f);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(b), 0xc0003fc0u);
}

TEST(Half, arithmetic_rounds_once) {
  EXPECT_EQ(float(__half(2048.0f) + __half(1.0f)), 2048.0f);  // a tie, to even
  EXPECT_EQ(float(__half(2048.0f) + __half(3.0f)), 2052.0f);
  EXPECT_EQ(float(__half(300.0f) * __half(300.0f)), INFINITY);
  EXPECT_TRUE(__half(1.0f) < __half(2.0f));
}

static_assert(std::is_trivially_default_constructible_v<__half>);
static_assert(std::is_trivially_default_constructible_v<__nv_bfloat16>);
static_assert(std::is_trivially_copyable_v<__half2> && sizeof(__half2) == 4 && alignof(__half2) == 4);

}  // namespace
