// Which element of which matrix each lane holds in each register: PTX ISA, mma.m16n8k16 and ldmatrix.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels.h"
#include "on_device.h"
#include "storage.h"

namespace device_tests {
namespace {

// The PTX ISA's own formulas for element i of a lane's fragment.
int group_id(int lane) { return lane >> 2; }
int thread_in_group(int lane) { return lane % 4; }

// a0..a7
int a_row(int lane, int i) { return (0 <= i && i < 2) || (4 <= i && i < 6) ? group_id(lane) : group_id(lane) + 8; }
int a_column(int lane, int i) { return thread_in_group(lane) * 2 + (i & 1) + (i >= 4 ? 8 : 0); }
// b0..b3
int b_row(int lane, int i) { return thread_in_group(lane) * 2 + (i & 1) + (i >= 2 ? 8 : 0); }
int b_column(int lane, int) { return group_id(lane); }
// c0..c3
int c_row(int lane, int i) { return i < 2 ? group_id(lane) : group_id(lane) + 8; }
int c_column(int lane, int i) { return thread_in_group(lane) * 2 + (i & 1); }

uint32_t pair(uint16_t low, uint16_t high) { return low | uint32_t(high) << 16; }

// Distinct integers that both formats hold, and products with a one-hot matrix that fp32 holds.
int a_value(int row, int column) { return row * 16 + column + 1; }
int b_value(int row, int column) { return row * 8 + column + 1; }
float c_value(int row, int column) { return 1000.0f + row * 8 + column; }

class Fragments : public OnDevice<testing::TestWithParam<DType>> {
 protected:
  uint16_t bits(int x) const { return integer_bits(GetParam(), x); }

  // Appends all of one fragment: element (lane, i) is of(lane, i), an integer.
  template <class Of>
  void append(Words& fragments, int elements, Of of) const {
    for (int lane = 0; lane < 32; lane++)
      for (int i = 0; i < elements; i += 2) fragments.push_back(pair(bits(of(lane, i)), bits(of(lane, i + 1))));
  }

  void append_c(Floats& fragments) const {
    for (int lane = 0; lane < 32; lane++)
      for (int i = 0; i < 4; i++) fragments.push_back(c_value(c_row(lane, i), c_column(lane, i)));
  }
};

// A is 1 at one position: that row of C grows by one row of B, and nothing else changes.
TEST_P(Fragments, EveryElementOfA) {
  Words a, b;
  Floats c;
  for (int n = 0; n < 32 * 8; n++) {
    append(a, 8, [&](int lane, int i) { return lane * 8 + i == n; });
    append(b, 4, [](int lane, int i) { return b_value(b_row(lane, i), b_column(lane, i)); });
    append_c(c);
  }
  const Floats out = mma(GetParam(), a, b, c);
  for (int n = 0; n < 32 * 8; n++) {
    const int row = a_row(n / 8, n % 8), k = a_column(n / 8, n % 8);
    for (int lane = 0; lane < 32; lane++) {
      for (int i = 0; i < 4; i++) {
        const float before = c_value(c_row(lane, i), c_column(lane, i));
        const float added = c_row(lane, i) == row ? b_value(k, c_column(lane, i)) : 0;
        ASSERT_EQ(out[(n * 32 + lane) * 4 + i], before + added)
            << "A is 1 at lane " << n / 8 << ", a" << n % 8 << "; c" << i << " of lane " << lane;
      }
    }
  }
}

// B is 1 at one position: that column of C grows by one column of A.
TEST_P(Fragments, EveryElementOfB) {
  Words a, b;
  Floats c;
  for (int n = 0; n < 32 * 4; n++) {
    append(a, 8, [](int lane, int i) { return a_value(a_row(lane, i), a_column(lane, i)); });
    append(b, 4, [&](int lane, int i) { return lane * 4 + i == n; });
    append_c(c);
  }
  const Floats out = mma(GetParam(), a, b, c);
  for (int n = 0; n < 32 * 4; n++) {
    const int k = b_row(n / 4, n % 4), column = b_column(n / 4, n % 4);
    for (int lane = 0; lane < 32; lane++) {
      for (int i = 0; i < 4; i++) {
        const float before = c_value(c_row(lane, i), c_column(lane, i));
        const float added = c_column(lane, i) == column ? a_value(c_row(lane, i), k) : 0;
        ASSERT_EQ(out[(n * 32 + lane) * 4 + i], before + added)
            << "B is 1 at lane " << n / 4 << ", b" << n % 4 << "; c" << i << " of lane " << lane;
      }
    }
  }
}

// From rows in shared memory to C, with B stored as K is and as V is.
TEST_P(Fragments, ProductThroughLdmatrix) {
  const auto small = [](int n) { return n % 13; };
  std::vector<uint16_t> a(16 * 16), k(8 * 16), v(16 * 8);
  for (int row = 0; row < 16; row++)
    for (int column = 0; column < 16; column++) a[row * 16 + column] = bits(small(row * 5 + column * 3));
  for (int row = 0; row < 16; row++)
    for (int column = 0; column < 8; column++)
      k[column * 16 + row] = v[row * 8 + column] = bits(small(row * 7 + column * 2));

  for (const bool transposed : {true, false}) {
    const Floats c = multiply(GetParam(), a, transposed ? k : v, transposed);
    for (int row = 0; row < 16; row++) {
      for (int column = 0; column < 8; column++) {
        int expected = 0;
        for (int e = 0; e < 16; e++) expected += small(row * 5 + e * 3) * small(e * 7 + column * 2);
        ASSERT_EQ(c[row * 8 + column], expected) << (transposed ? "B as K" : "B as V") << " " << row << "," << column;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mma, Fragments, testing::Values(DType::fp16, DType::bf16),
                         [](const auto& info) { return name(info.param); });

class HalfSums : public OnDevice<> {
 protected:
  // A fragment of integers: element (lane, i) is of(lane, i).
  template <class Of>
  static Words fragment(int elements, Of of) {
    Words words;
    const auto bits = [&](int lane, int i) { return integer_bits(DType::fp16, of(lane, i)); };
    for (int lane = 0; lane < 32; lane++)
      for (int i = 0; i < elements; i += 2) words.push_back(pair(bits(lane, i), bits(lane, i + 1)));
    return words;
  }
};

// Up to 2048 integers are exact in fp16.
TEST_F(HalfSums, AreFp32sWhereNothingIsRounded) {
  const Words a = fragment(8, [](int lane, int i) { return (a_row(lane, i) * 5 + a_column(lane, i) * 3) % 7; });
  const Words b = fragment(4, [](int lane, int i) { return (b_row(lane, i) * 7 + b_column(lane, i) * 2) % 5; });
  Floats c;
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < 4; i++) c.push_back(c_value(c_row(lane, i), c_column(lane, i)));
  EXPECT_EQ(mma_half(a, b, c), mma(DType::fp16, a, b, c));
}

TEST_F(HalfSums, AreRoundedToFp16) {
  const Words a = fragment(8, [](int lane, int i) { return a_column(lane, i) == 0; });
  const Words b = fragment(4, [](int, int) { return 1; });
  EXPECT_EQ(mma_half(a, b, Floats(32 * 4, 2047)), Floats(32 * 4, 2048));
  EXPECT_EQ(mma_half(a, b, Floats(32 * 4, 2048)), Floats(32 * 4, 2048));  // 2049 lies between two numbers
}

struct NamedForm {
  Form form;
  int matrices;
  bool trans;
  const char* name;
};

class Ldmatrix : public OnDevice<testing::TestWithParam<NamedForm>> {};

// Element (row, column) of the tile is its own index, and the lanes name the rows in a mixed order.
TEST_P(Ldmatrix, EveryElement) {
  const auto [form, matrices, trans, name] = GetParam();
  std::vector<uint16_t> tile(32 * 8);
  std::iota(tile.begin(), tile.end(), uint16_t(0x1200));
  std::vector<int> rows(32);
  for (int lane = 0; lane < 32; lane++) rows[lane] = (lane * 11 + 5) % 32;

  const Words r = ldmatrix(form, tile, rows);
  for (int lane = 0; lane < 32; lane++) {
    for (int m = 0; m < matrices; m++) {
      const auto element = [&](int row, int column) { return tile[rows[m * 8 + row] * 8 + column]; };
      const int g = group_id(lane), t = thread_in_group(lane);
      const uint32_t expected =
          trans ? pair(element(2 * t, g), element(2 * t + 1, g)) : pair(element(g, 2 * t), element(g, 2 * t + 1));
      ASSERT_EQ(r[lane * matrices + m], expected) << "lane " << lane << ", matrix " << m;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllForms, Ldmatrix,
                         testing::Values(NamedForm{Form::x4, 4, false, "x4"},
                                         NamedForm{Form::x4_trans, 4, true, "x4_trans"},
                                         NamedForm{Form::x2, 2, false, "x2"},
                                         NamedForm{Form::x2_trans, 2, true, "x2_trans"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace device_tests
