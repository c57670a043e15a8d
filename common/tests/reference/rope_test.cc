// RoPE against a published worked example, and the properties that make it what it is.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "reference/attention.h"

namespace reference {
namespace {

// The worked example of a blog series on attention (part 2): rotate-half, D = 4, so that the angles of position p are
// p * {1, 0.01}. Rows are positions 0 to 3 of its first head; everything is printed to 4 decimals. Q = K, and the
// scores are not scaled.
namespace example {

const Matrix q{{0.3581, 0.1616, 0.5714, 0.4795},
               {0.5468, 0.3008, 0.9154, 0.3457},
               {0.4201, 0.1406, 0.2273, 0.5269},
               {0.1441, 0.1024, 0.858, 0.831}};
const Matrix cos{{1.0, 1.0}, {0.5403, 0.9999}, {-0.4161, 0.9998}, {-0.99, 0.9996}};
const Matrix sin{{0.0, 0.0}, {0.8415, 0.01}, {0.9093, 0.02}, {0.1411, 0.03}};
const Matrix q_rotated{{0.3581, 0.1616, 0.5714, 0.4795},
                       {-0.4748, 0.2973, 0.9547, 0.3487},
                       {-0.3815, 0.13, 0.2874, 0.5296},
                       {-0.2637, 0.0774, -0.8291, 0.8337}};
const Matrix scores{{0.7108, 0.5907, 0.3026, -0.1559},
                    {0.5907, 1.3469, 0.6789, -0.3526},
                    {0.3026, 0.6789, 0.5255, 0.3139},
                    {-0.1559, -0.3526, 0.3139, 1.458}};
}  // namespace example

void expect_printed(const Matrix& got, const Matrix& printed) {
  ASSERT_EQ(got.rows(), printed.rows());
  ASSERT_EQ(got.cols(), printed.cols());
  EXPECT_LE((got - printed).cwiseAbs().maxCoeff(), 0.5001e-4) << "got\n" << got << "\nprinted\n" << printed;
}

const std::vector<int> first_positions = {0, 1, 2, 3};

TEST(Rope, ReproducesThePublishedExample) {
  const Rope rope(8, 4);
  expect_printed(rope.cos.topRows(4), example::cos);
  expect_printed(rope.sin.topRows(4), example::sin);
  const Matrix q = rotate(example::q, first_positions, rope);
  expect_printed(q, example::q_rotated);
  expect_printed(q * q.transpose(), example::scores);
}

// The example as our own code computes it: a line for each position.
std::string worked_example() {
  const Matrix rotated = rotate(example::q, first_positions, Rope(8, 4)), scores = rotated * rotated.transpose();
  std::ostringstream text;
  text << std::fixed << std::setprecision(4);
  text << "position  q = k                            rotated                          q k^T, both rotated\n";
  for (int i = 0; i < 4; i++) {
    text << std::setw(8) << i;
    for (const Matrix& part : {example::q, rotated, scores}) {
      text << "  ";
      for (int d = 0; d < 4; d++) text << std::setw(d == 0 ? 7 : 8) << part(i, d);
    }
    text << '\n';
  }
  return text.str();
}

TEST(Rope, TheLessonShowsTheExample) {
  std::ifstream file(LESSON_OF_ROPE);
  const std::string lesson{std::istreambuf_iterator<char>(file), {}};
  std::cout << worked_example();
  EXPECT_NE(lesson.find("```\n" + worked_example() + "```\n"), std::string::npos) << "not in " << LESSON_OF_ROPE;
}

// Multiplying the complex number x[i] + i x[i + D/2] by exp(i p theta_i) is the same rotation.
TEST(Rope, IsAComplexProduct) {
  constexpr int head_dim = 64, position = 100;
  const Rope rope(position + 1, head_dim);
  const Matrix x = Matrix::Random(1, head_dim);
  const Matrix y = rotate(x, {position}, rope);
  for (int i = 0; i < head_dim / 2; i++) {
    const std::complex<double> z = std::complex(x(0, i), x(0, i + head_dim / 2)) *
                                   std::polar(1.0, position * std::pow(10000.0, -2.0 * i / head_dim));
    EXPECT_NEAR(y(0, i), z.real(), 1e-13);
    EXPECT_NEAR(y(0, i + head_dim / 2), z.imag(), 1e-13);
  }
}

TEST(Rope, RotatingBackIsTheInverseAndTheTranspose) {
  const Rope rope(40, 16);
  const Matrix x = Matrix::Random(5, 16), y = Matrix::Random(5, 16);
  const std::vector<int> positions = {0, 1, -7, 39, -39};
  EXPECT_NEAR((rotate_back(rotate(x, positions, rope), positions, rope) - x).norm(), 0, 1e-14);
  EXPECT_NEAR(rotate(x, positions, rope).cwiseProduct(y).sum(), x.cwiseProduct(rotate_back(y, positions, rope)).sum(),
              1e-13);
}

// Scores depend on the distance between query and key alone.
TEST(Rope, ScoresDoNotChangeUnderACommonOffset) {
  const Rope rope(2000, 32);
  const Matrix q = Matrix::Random(4, 32), k = Matrix::Random(4, 32);
  const Matrix scores = rotate(q, first_positions, rope) * rotate(k, first_positions, rope).transpose();
  for (const int offset : {1, 17, 1000, -2, -1500}) {
    std::vector<int> moved;
    for (const int p : first_positions) moved.push_back(p + offset);
    const Matrix moved_scores = rotate(q, moved, rope) * rotate(k, moved, rope).transpose();
    EXPECT_NEAR((moved_scores - scores).norm(), 0, 1e-11) << "offset " << offset;
  }
  const Matrix apart = rotate(q, {1, 2, 3, 4}, rope) * rotate(k, first_positions, rope).transpose();
  EXPECT_GT((apart - scores).norm(), 1e-2);
}

TEST(Rope, TheLastQueryStandsAtTheLastKey) {
  const attention::Problem longer_keys = {.seq_q = 2, .seq_k = 5}, longer_queries = {.seq_q = 3, .seq_k = 2};
  EXPECT_EQ(query_positions(longer_keys), (std::vector<int>{3, 4}));
  EXPECT_EQ(query_positions(longer_queries), (std::vector<int>{-1, 0, 1}));
  EXPECT_EQ(key_positions(longer_keys), (std::vector<int>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace reference
