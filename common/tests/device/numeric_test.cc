// Every fp16 and bf16 value to fp32, and to each of them every number where rounding decides; the functions of math.h.
#include "device/numeric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels.h"
#include "on_device.h"
#include "storage.h"

namespace device_tests {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<uint16_t> all_bits() {
  std::vector<uint16_t> bits(65536);
  for (int n = 0; n < 65536; n++) bits[n] = uint16_t(n);
  return bits;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

bool same_bits(DType dtype, uint16_t a, uint16_t b) { return a == b || (is_nan(dtype, a) && is_nan(dtype, b)); }

struct Rounding {
  float x;
  uint16_t bits;  // what x rounds to
};

// Each value, each midpoint of two neighbours (a tie: to the even one), and the floats on either side of it. The
// midpoint above the largest value is the first to become infinity.
std::vector<Rounding> roundings(DType dtype) {
  std::vector<Rounding> cases = {{nan, 0x7fff}};
  for (const uint16_t sign : {0x0000, 0x8000}) {
    const float s = sign ? -1 : 1;
    const auto add = [&](float x, int bits) { cases.push_back({s * x, uint16_t(bits | sign)}); };
    for (int bits = 0; bits < infinity_bits(dtype); bits++) {
      const float tie = float((magnitude(dtype, uint16_t(bits)) + magnitude(dtype, uint16_t(bits + 1))) / 2);
      add(value(dtype, uint16_t(bits)), bits);
      add(std::nextafter(tie, 0.0f), bits);
      add(tie, bits + bits % 2);
      add(std::nextafter(tie, inf), bits + 1);
    }
    add(std::numeric_limits<float>::max(), infinity_bits(dtype));
    add(inf, infinity_bits(dtype));
  }
  while (cases.size() % 32 != 0) cases.push_back({0, 0});  // whole warps
  return cases;
}

class HostNumeric : public testing::TestWithParam<DType> {};
class Numeric : public OnDevice<testing::TestWithParam<DType>> {};

TEST_P(Numeric, ToFloatOfEveryValue) {
  const DType dtype = GetParam();
  const auto bits = all_bits();
  const Floats y = to_float(dtype, bits);
  for (int n = 0; n < 65536; n++) ASSERT_TRUE(same(y[n], value(dtype, bits[n]))) << std::hex << n << ": " << y[n];
}

TEST_P(Numeric, FromFloatRoundsToNearestEven) {
  const DType dtype = GetParam();
  const auto cases = roundings(dtype);
  Floats x;
  for (const auto& c : cases) x.push_back(c.x);
  const std::vector<uint16_t> y = from_float(dtype, x);
  for (size_t n = 0; n < cases.size(); n++)
    ASSERT_TRUE(same_bits(dtype, y[n], cases[n].bits)) << std::hexfloat << x[n] << std::hex << " became " << y[n];
}

// What the host makes of them: references and inputs are converted there.
TEST_P(HostNumeric, ConvertsLikewise) {
  const DType dtype = GetParam();
  const auto host_to_float = [&](uint16_t bits) {
    return dtype == DType::fp16 ? ::to_float(std::bit_cast<__half>(bits))
                                : ::to_float(std::bit_cast<__nv_bfloat16>(bits));
  };
  const auto host_from_float = [&](float x) {
    return dtype == DType::fp16 ? std::bit_cast<uint16_t>(::from_float<__half>(x))
                                : std::bit_cast<uint16_t>(::from_float<__nv_bfloat16>(x));
  };
  for (const uint16_t bits : all_bits()) ASSERT_TRUE(same(host_to_float(bits), value(dtype, bits))) << std::hex << bits;
  for (const auto& [x, bits] : roundings(dtype))
    ASSERT_TRUE(same_bits(dtype, host_from_float(x), bits)) << std::hexfloat << x;
}

TEST_P(Numeric, PairsKeepTheirOrderAndRoundEach) {
  const DType dtype = GetParam();
  const auto cases = roundings(dtype);
  Floats low, high;
  for (size_t n = 0; n < cases.size(); n++) {
    low.push_back(cases[n].x);
    high.push_back(cases[cases.size() - 1 - n].x);
  }
  const Words packed = pack2(dtype, low, high);
  const Floats unpacked = unpack2(dtype, packed);
  for (size_t n = 0; n < cases.size(); n++) {
    const uint16_t expected_low = cases[n].bits, expected_high = cases[cases.size() - 1 - n].bits;
    ASSERT_TRUE(same_bits(dtype, uint16_t(packed[n]), expected_low)) << std::hexfloat << low[n];
    ASSERT_TRUE(same_bits(dtype, uint16_t(packed[n] >> 16), expected_high)) << std::hexfloat << high[n];
    ASSERT_TRUE(same(unpacked[2 * n], value(dtype, expected_low)));
    ASSERT_TRUE(same(unpacked[2 * n + 1], value(dtype, expected_high)));
  }
}

INSTANTIATE_TEST_SUITE_P(Storage, HostNumeric, testing::Values(DType::fp16, DType::bf16),
                         [](const auto& info) { return name(info.param); });
INSTANTIATE_TEST_SUITE_P(Storage, Numeric, testing::Values(DType::fp16, DType::bf16),
                         [](const auto& info) { return name(info.param); });

class Math : public OnDevice<> {};

TEST_F(Math, Exp2Approx) {
  Floats x(1024);
  for (int n = 0; n < 1024; n++) x[n] = -100 + 200 * n / 1023.0f;
  x[0] = 0;
  x[1] = -inf;
  x[2] = -1000;
  const Floats y = evaluate(Function::exp2_approx, x);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 0);
  for (int n = 3; n < 1024; n++) {
    const double exact = std::exp2(double(x[n]));
    ASSERT_NEAR(y[n] / exact, 1, 0x1p-21) << x[n];
  }
}

// P is rounded to 16 bits, and beside the error of that the polynomial's should not matter: neither the largest nor the
// mean one.
TEST_F(Math, Exp2Polynomial) {
  Floats x(65536);
  for (int n = 0; n < 65536; n++) x[n] = -14 + n / 2260.0f;  // up to 15: results that are normal in fp16
  const Floats by_polynomial = evaluate(Function::exp2_polynomial, x), by_unit = evaluate(Function::exp2_approx, x);
  struct Error {
    double most = 0, squares = 0;
  };
  const auto error = [&](const Floats& y) {
    Error sum;
    for (size_t n = 0; n < x.size(); n++) {
      const double one = y[n] / std::exp2(double(x[n])) - 1;
      sum.most = std::max(sum.most, std::abs(one)), sum.squares += one * one;
    }
    return sum;
  };
  EXPECT_LT(error(by_polynomial).most, 8.6e-5);
  for (const DType dtype : {DType::fp16, DType::bf16}) {
    const auto rounded = [&](const Floats& y) { return error(to_float(dtype, from_float(dtype, y))); };
    const Error unit = rounded(by_unit), polynomial = rounded(by_polynomial);
    EXPECT_LT(error(by_polynomial).most, unit.most / 5);
    EXPECT_LT(polynomial.squares, 1.1 * unit.squares);
  }
}

TEST_F(Math, Exp2PolynomialOfWhatIsVerySmall) {
  Floats x(32, -inf);
  for (int n = 0; n < 16; n++) x[n] = -126 + n / 16.0f;         // the smallest normal results
  for (int n = 16; n < 24; n++) x[n] = -126 - (n - 15) / 8.0f;  // denormal
  x[24] = -127.5f, x[25] = -1000, x[26] = -1e30f, x[27] = nan;
  const Floats y = evaluate(Function::exp2_polynomial, x);
  for (int n = 0; n < 16; n++) EXPECT_NEAR(y[n] / std::exp2(double(x[n])), 1, 8.6e-5) << x[n];
  for (int n = 16; n < 24; n++) EXPECT_NEAR(y[n], std::exp2(double(x[n])), 0x1p-126) << x[n];
  for (int n = 24; n < 32; n++) EXPECT_EQ(y[n], 0) << x[n];  // NaN too: whoever calls it keeps that
}

TEST_F(Math, Log2Approx) {
  Floats x(1024);
  for (int n = 0; n < 1024; n++) x[n] = std::exp2(-30 + 60 * n / 1023.0f);
  x[0] = 0;
  x[1] = 1;
  const Floats y = evaluate(Function::log2_approx, x);
  EXPECT_EQ(y[0], -inf);
  EXPECT_EQ(y[1], 0);
  for (int n = 2; n < 1024; n++) {
    const double exact = std::log2(double(x[n]));
    ASSERT_NEAR(y[n], exact, 0x1p-21 * std::max(1.0, std::abs(exact))) << x[n];
  }
}

// Two warps, so that a reduction that reached beyond its own would show.
TEST_F(Math, Reductions) {
  Floats x(64);
  for (int n = 0; n < 64; n++) x[n] = float((n * 37) % 64 - 50);  // distinct, of either sign
  x[9] = -inf;
  const struct {
    Function function;
    int width;
    bool is_sum;
  } reductions[] = {{Function::warp_sum, 32, true},
                    {Function::warp_max, 32, false},
                    {Function::quad_sum, 4, true},
                    {Function::quad_max, 4, false}};
  for (const auto& [function, width, is_sum] : reductions) {
    const Floats y = evaluate(function, x);
    for (int n = 0; n < 64; n++) {
      const float* group = x.data() + n / width * width;
      float expected = is_sum ? 0 : -inf;
      for (int m = 0; m < width; m++) expected = is_sum ? expected + group[m] : std::max(expected, group[m]);
      ASSERT_EQ(y[n], expected) << (is_sum ? "sum" : "max") << " over " << width << ", lane " << n;
    }
  }
}

}  // namespace
}  // namespace device_tests
