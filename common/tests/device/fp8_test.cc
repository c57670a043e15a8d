// Numbers of eight bits: every one of them, every number where rounding decides, and the products of a warpgroup. PTX
// ISA, "Alternate Floating-Point Data Formats" and "Register Fragments for wgmma.mma_async.m64nNk32".
#include "device/fp8.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "fp8_kernels.h"
#include "hopper_kernels.h"
#include "on_device.h"

namespace device_tests {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

// What the bits mean, from the definition of the formats and nothing else.
int mantissa_bits(Fp8 type) { return type == Fp8::e4m3 ? 3 : 2; }
int largest(Fp8 type) { return type == Fp8::e4m3 ? 0x7e : 0x7b; }  // its bits
double magnitude(Fp8 type, int bits) {
  const int mantissa = mantissa_bits(type), bias = type == Fp8::e4m3 ? 7 : 15;
  const int exponent = bits >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  if (exponent == 0) return std::ldexp(fraction, 1 - bias - mantissa);
  return std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
}
float value(Fp8 type, uint8_t bits) {
  const int size = bits & 0x7f;
  if (type == Fp8::e5m2 && size == 0x7c) return bits & 0x80 ? -inf : inf;
  if (size > largest(type)) return nan;
  return float(bits & 0x80 ? -magnitude(type, size) : magnitude(type, size));
}
bool is_nan(Fp8 type, uint8_t bits) { return std::isnan(value(type, bits)); }

class Fp8Numbers : public testing::TestWithParam<Fp8> {
 protected:
  float host_value(uint8_t bits) const {
    return GetParam() == Fp8::e4m3 ? ::to_float(std::bit_cast<__nv_fp8_e4m3>(bits))
                                   : ::to_float(std::bit_cast<__nv_fp8_e5m2>(bits));
  }
  uint8_t host_bits(float x) const {
    return GetParam() == Fp8::e4m3 ? std::bit_cast<uint8_t>(::from_float<__nv_fp8_e4m3>(x))
                                   : std::bit_cast<uint8_t>(::from_float<__nv_fp8_e5m2>(x));
  }
};

TEST_P(Fp8Numbers, HaveTheirValues) {
  for (int bits = 0; bits < 256; bits++) {
    const float got = host_value(uint8_t(bits)), expected = value(GetParam(), uint8_t(bits));
    ASSERT_TRUE((std::isnan(got) && std::isnan(expected)) || got == expected) << bits << ": " << got;
  }
}

// Each value, each midpoint of two neighbours (a tie: to the even one), and the floats on either side of it; and what
// is beyond the largest.
TEST_P(Fp8Numbers, AreRoundedToNearestEvenAndSaturate) {
  const Fp8 type = GetParam();
  Floats x;
  Bytes expected;
  for (const uint8_t sign : {0x00, 0x80}) {
    const float s = sign ? -1 : 1;
    const auto add = [&](double number, int bits) {
      x.push_back(s * float(number));
      expected.push_back(uint8_t(bits | sign));
    };
    for (int bits = 0; bits <= largest(type); bits++) {
      add(magnitude(type, bits), bits);
      if (bits == largest(type)) break;
      const float tie = float((magnitude(type, bits) + magnitude(type, bits + 1)) / 2);
      add(std::nextafter(tie, 0.f), bits);
      add(tie, bits + bits % 2);
      add(std::nextafter(tie, inf), bits + 1);
    }
    for (const float beyond : {464.f, 465.f, 480.f, 61440.f, 65536.f, 1e30f, inf})
      if (beyond > magnitude(type, largest(type))) add(beyond, largest(type));
  }
  x.push_back(nan), expected.push_back(0x7f);
  while (x.size() % 4 != 0) x.push_back(0), expected.push_back(0);
  const auto same = [&](uint8_t a, uint8_t b) { return a == b || (is_nan(type, a) && is_nan(type, b)); };
  for (size_t i = 0; i < x.size(); i++)
    ASSERT_TRUE(same(host_bits(x[i]), expected[i])) << std::hexfloat << x[i] << " became " << int(host_bits(x[i]));
  if (!hopper_present()) GTEST_SKIP() << "without a GPU of compute capability 9.0, the host's conversions alone";
  const Bytes packed = packed_fp8(type, x);
  for (size_t i = 0; i < x.size(); i++)
    ASSERT_TRUE(same(packed[i], expected[i])) << std::hexfloat << x[i] << " became " << int(packed[i]);
}

INSTANTIATE_TEST_SUITE_P(Types, Fp8Numbers, testing::Values(Fp8::e4m3, Fp8::e5m2),
                         [](const auto& info) { return info.param == Fp8::e4m3 ? "e4m3" : "e5m2"; });

class Fp8Products : public OnDevice<testing::TestWithParam<int>> {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (device_present() && !hopper_present()) GTEST_SKIP() << "needs a GPU of compute capability 9.0";
  }
  const Fp8ProductCase& of() const { return fp8_product_cases()[size_t(GetParam())]; }
  int steps() const { return of().row_bytes / 32; }

  // A [64, 32] and B [N, 32] of these bytes, and every element of D, which is added to if `accumulate`.
  template <class A, class B, class D>
  void expect_product(int step, bool accumulate, A a_bits, B b_bits, D expected) const {
    const int columns = of().columns;
    Bytes a, b;
    Floats before;
    for (int i = 0; i < 64 * 32; i++) a.push_back(a_bits(i / 32, i % 32));
    for (int i = 0; i < columns * 32; i++) b.push_back(b_bits(i / 32, i % 32));
    for (int i = 0; i < 64 * columns; i++) before.push_back(float(i % 61));
    const Floats d = product(of(), a, b, before, accumulate, step);
    for (int i = 0; i < 64 * columns; i++)
      ASSERT_EQ(d[size_t(i)], expected(a, b, i / columns, i % columns, accumulate ? before[size_t(i)] : 0.f))
          << "row " << i / columns << ", column " << i % columns << ", step " << step;
  }
};

// Each row of A is 1 in one place, and 0 elsewhere: then D is an element of B, whatever that is; and the other way
// round.
TEST_P(Fp8Products, FindEveryNumberInItsPlace) {
  const Fp8 type = of().type;
  const uint8_t one = type == Fp8::e4m3 ? 0x38 : 0x3c;
  const auto any = [&](int row, int k) {
    const uint8_t bits = uint8_t(row * 37 + k * 11);
    return std::isfinite(value(type, bits)) ? bits : one;
  };
  for (int step = 0; step < steps(); step++) {
    const auto chosen = [&](int row) { return (row * 5 + row / 8 + step) % 32; };
    const auto once = [&](int row, int k) { return k == chosen(row) ? one : uint8_t(0); };
    expect_product(step, false, once, any, [&](const Bytes&, const Bytes& b, int row, int column, float) {
      return value(type, b[size_t(column * 32 + chosen(row))]);
    });
    expect_product(step, false, any, once, [&](const Bytes& a, const Bytes&, int row, int column, float) {
      return value(type, a[size_t(row * 32 + chosen(column))]);
    });
  }
}

// Small whole numbers, whose sums no tensor core rounds.
TEST_P(Fp8Products, AddUpAllThirtyTwo) {
  const Fp8 type = of().type;
  std::mt19937 random(1);
  const auto small = [&](int, int) {
    const float numbers[] = {0, 1, 2, 3, -1, -2, -3, 4};
    const float x = numbers[random() % 8];
    return type == Fp8::e4m3 ? std::bit_cast<uint8_t>(__nv_fp8_e4m3(x)) : std::bit_cast<uint8_t>(__nv_fp8_e5m2(x));
  };
  for (int run = 0; run < 2 * steps(); run++)
    expect_product(run / 2, run % 2 == 1, small, small,
                   [&](const Bytes& a, const Bytes& b, int row, int column, float before) {
                     for (int k = 0; k < 32; k++)
                       before += value(type, a[size_t(row * 32 + k)]) * value(type, b[size_t(column * 32 + k)]);
                     return before;
                   });
}

// 1 and a small power of two: as two products of one instruction, and as what is added to. So many bits behind the
// leading one a tensor core keeps, which tolerances in eight bits are made of (harness/verdict.cc).
TEST_P(Fp8Products, KeepThirteenBitsBehindTheLeadingOne) {
  const Fp8 type = of().type;
  const int columns = of().columns, bias = type == Fp8::e4m3 ? 7 : 15, mantissa = mantissa_bits(type);
  const auto power = [&](int exponent) { return uint8_t((exponent + bias) << mantissa); };  // from 2^-6 on
  for (const bool from_before : {false, true}) {
    int kept = 0;
    for (int bits = 1; bits <= 12 + 4; bits++) {
      const int left = bits / 2, right = bits - left;  // as a product of two, 2^-8 at least
      Bytes a(64 * 32, 0), b(size_t(columns) * 32, 0);
      const auto small = [&](int exponent) {
        return exponent > 6 && type == Fp8::e4m3 ? uint8_t(1 << (9 - exponent)) : power(-exponent);
      };
      for (int row = 0; row < 64; row++) a[size_t(row) * 32] = small(left), a[size_t(row) * 32 + 31] = power(0);
      for (int column = 0; column < columns; column++) {
        b[size_t(column) * 32] = small(right);
        b[size_t(column) * 32 + 31] = from_before ? uint8_t(0) : power(0);
      }
      const Floats d = product(of(), a, b, Floats(size_t(64) * columns, 1.f), from_before, 0);
      for (const float x : d) ASSERT_TRUE(x == 1 || x == 1 + std::ldexp(1.f, -bits)) << bits << ": " << x;
      if (d[0] > 1 && kept == bits - 1) kept = bits;
    }
    RecordProperty(from_before ? "bits_of_a_sum" : "bits_of_products", kept);
    EXPECT_EQ(kept, 13) << (from_before ? "of what is added to" : "of the products of one instruction");
  }
}

// The exponent of a number, as a significand of 1 to 2 has it; a subnormal one has that of the least normal.
int exponent(Fp8 type, uint8_t bits) {
  return std::max((bits & 0x7f) >> mantissa_bits(type), 1) - (type == Fp8::e4m3 ? 7 : 15);
}

// What the engine does, in integers and one number at a time: products and sum are multiples of 2^-13 of the power of
// two of the largest of them, and what is behind is cut off; so is what the sum has behind 13 bits.
float sum_of_products(Fp8 type, const uint8_t* a, const uint8_t* b, float before) {
  int largest = before == 0 ? -1000 : std::ilogb(before);
  for (int k = 0; k < 32; k++)
    if (value(type, a[k]) * value(type, b[k]) != 0)
      largest = std::max(largest, exponent(type, a[k]) + exponent(type, b[k]));
  const auto units = [&](double x) { return int64_t(std::ldexp(x, 13 - largest)); };
  int64_t sum = units(before);
  for (int k = 0; k < 32; k++) sum += units(double(value(type, a[k])) * value(type, b[k]));
  int behind = 0;
  while (std::abs(sum >> behind) >= 1 << 14) behind++;
  const int64_t kept = (std::abs(sum) >> behind << behind) * (sum < 0 ? -1 : 1);
  return float(std::ldexp(double(kept), largest - 13));
}

// Any finite numbers, of any size beside one another, on the engine and on a GPU: to the bit, but for the sign of zero.
// No disagreement was found. NaN and infinity are not compared.
TEST_P(Fp8Products, AreCutOffBehindThirteenBits) {
  const Fp8 type = of().type;
  const int columns = of().columns;
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  const auto any = [&] {
    const uint8_t bits = uint8_t(random());
    return std::isfinite(value(type, bits)) ? bits : uint8_t(0);
  };
  const auto usual = [&] {
    const float x = normal(random);
    return type == Fp8::e4m3 ? std::bit_cast<uint8_t>(__nv_fp8_e4m3(x)) : std::bit_cast<uint8_t>(__nv_fp8_e5m2(x));
  };
  const auto rare = [&] { return random() % 8 == 0 ? any() : uint8_t(0); };
  const auto expect_sums = [&](auto number, auto before_of) {
    Bytes a(64 * 32), b(size_t(columns) * 32);
    Floats before(size_t(64) * columns);
    for (uint8_t& x : a) x = number();
    for (uint8_t& x : b) x = number();
    for (float& x : before) x = before_of();
    const Floats d = product(of(), a, b, before, true, 0);
    for (int i = 0; i < 64 * columns; i++)
      ASSERT_EQ(d[size_t(i)],
                sum_of_products(type, &a[size_t(i / columns * 32)], &b[size_t(i % columns * 32)], before[size_t(i)]))
          << "row " << i / columns << ", column " << i % columns << ", added to " << before[size_t(i)];
  };
  const auto of_any_size = [&] { return std::ldexp(normal(random), int(random() % 40) - 20); };
  expect_sums(any, of_any_size);
  expect_sums(usual, [&] { return normal(random) * 10; });
  expect_sums(usual, [] { return 0.f; });
  expect_sums(rare, of_any_size);
}

INSTANTIATE_TEST_SUITE_P(Forms, Fp8Products, testing::Range(0, int(fp8_product_cases().size())), [](const auto& info) {
  const Fp8ProductCase& of = fp8_product_cases()[size_t(info.param)];
  return std::string(of.type == Fp8::e4m3 ? "e4m3_" : "e5m2_") + std::to_string(of.columns) + "_rows_of_" +
         std::to_string(of.row_bytes) + (of.a_in_registers ? "_A_in_registers" : "");
});

}  // namespace
}  // namespace device_tests
