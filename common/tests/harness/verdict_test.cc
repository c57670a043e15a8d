// Does the comparison accept what is right and nothing else? Every result here is made on the host.
#include "harness/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "reference/attention.h"

namespace harness {
namespace {

using attention::DType;
using attention::Mask;
using attention::Problem;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Query rows 0..3 of 9 see no key.
const Problem empty_rows = {2, 4, 2, 9, 5, 8, DType::fp16, Mask::causal, attention::default_scale(8)};

struct Results {
  explicit Results(const Problem& p, InputKind kind = InputKind::spread)
      : inputs(make_inputs(p, kind, 3)), reference(p, inputs, true) {
    // What a perfect kernel would have stored.
    o = from_storage(to_storage({reference.o().begin(), reference.o().end()}, p.dtype), p.dtype);
    lse.assign(reference.lse().begin(), reference.lse().end());
  }
  Verdict verdict() const { return reference.check_forward(o, lse); }

  HostTensors inputs;
  Reference reference;
  std::vector<float> o, lse;
};

TEST(Forward, TheRoundedReferencePasses) {
  for (const DType dtype : {DType::fp16, DType::bf16})
    for (const InputKind kind : all_input_kinds) {
      if (kind == InputKind::overflow && dtype == DType::fp16) continue;  // is bf16's
      Problem p = empty_rows;
      p.dtype = dtype;
      if (kind == InputKind::overflow) p.mask = Mask::none;  // every row has to see a key that counts
      const Verdict verdict = Results(p, kind).verdict();
      EXPECT_TRUE(verdict.passed()) << name(kind) << ": " << verdict.first_wrong();
      EXPECT_EQ(verdict.first_wrong(), "");
      EXPECT_EQ(verdict.rows_checked, 2 * 4 * 9);
    }
}

TEST(Forward, NamesTheFirstWrongElement) {
  Results r(empty_rows);
  const size_t index = ((1 * 4 + 2) * 9 + 7) * 8 + 3;  // b=1, h=2, i=7, d=3
  r.o[index] += 1;
  r.o[index + 20] += 1;
  const Verdict verdict = r.verdict();
  EXPECT_FALSE(verdict.passed());
  EXPECT_EQ(verdict.first_wrong().find("o[b=1, h=2, i=7, d=3] is "), 0u) << verdict.first_wrong();
  EXPECT_EQ(verdict.worst().tensor, "o");
  EXPECT_NEAR(verdict.worst().error, 1, 1e-3);
}

TEST(Forward, TheToleranceIsTheBoundary) {
  Results r(empty_rows);
  const size_t index = r.o.size() - 1;
  const double tolerance = r.verdict().comparisons[0].tolerance, expected = r.reference.o()[index];
  r.o[index] = float(expected + 0.99 * tolerance);
  EXPECT_TRUE(r.verdict().passed());
  r.o[index] = float(expected + 1.01 * tolerance);
  EXPECT_FALSE(r.verdict().passed());
}

// 2 * baseline + 2 * max |(ref + 0.3 - 0.3) - ref| is of the size of a few roundings: far below the results, which
// are averages of normal numbers.
TEST(Forward, TheToleranceIsSmall) {
  for (const int n : {64, 257}) {
    Problem p = {1, 1, 1, n, n, 64, DType::fp16, Mask::none, attention::default_scale(64)};
    EXPECT_LT(Results(p).verdict().comparisons[0].tolerance, 0.02);
    EXPECT_GT(Results(p).verdict().comparisons[0].tolerance, 0.0005);
    p.dtype = DType::bf16;
    EXPECT_LT(Results(p).verdict().comparisons[0].tolerance, 0.15);
  }
}

// With a single key O is V, which every baseline gets right: what is left is 2 * max |(v + 0.3 - 0.3) - v|. V lies in
// (-4, 4), where adding and subtracting round to within half a step of 2^-8 (fp16; the sum may exceed 4) or 2^-5
// (bf16).
TEST(Forward, TheToleranceHasTheRoundingOfTheResult) {
  for (const auto& [dtype, step] : {std::pair{DType::fp16, 0x1p-8}, std::pair{DType::bf16, 0x1p-5}}) {
    const Problem p = {1, 1, 1, 5, 1, 64, dtype, Mask::none, attention::default_scale(64)};
    const double tolerance = Results(p).verdict().comparisons[0].tolerance;
    EXPECT_GT(tolerance, step / 16) << name(dtype);
    EXPECT_LT(tolerance, 2.1 * step) << name(dtype);
  }
}

// Every element off by a thousandth of itself, which is less than the largest error may be and more than all may be.
TEST(Norms, SeeWhatAllElementsLose) {
  const Problem p = {1, 1, 1, 128, 512, 64, DType::fp16, Mask::none, attention::default_scale(64)};
  ASSERT_TRUE(norms_count(p));
  EXPECT_FALSE(norms_count({1, 8, 8, 1 << 20, 1, 64, DType::fp16, Mask::none}));
  Results r(p);
  EXPECT_EQ(r.verdict().inaccurate(), "");
  for (float& x : r.o) x *= 1.001f;
  EXPECT_TRUE(r.verdict().passed()) << r.verdict().first_wrong();
  EXPECT_EQ(r.verdict().inaccurate().find("the error of o has a norm of 0.00"), 0u) << r.verdict().inaccurate();
  r.o[5] = nan;
  EXPECT_EQ(r.verdict().inaccurate().find("the error of o has a norm of nan"), 0u) << r.verdict().inaccurate();
}

TEST(Norms, ToleranceIsTheBoundary) {
  const Problem p = {1, 1, 1, 64, 64, 64, DType::bf16, Mask::none, attention::default_scale(64)};
  EXPECT_FALSE(norms_count(p));
  Results r(p);
  const double tolerance = r.verdict().comparisons[0].norm_tolerance;
  r.o.assign(r.reference.o().begin(), r.reference.o().end());
  for (const double factor : {0.99, 1.01}) {
    std::vector<float> o = r.o;
    for (float& x : o) x *= float(1 + factor * tolerance);
    EXPECT_EQ(r.reference.check_forward(o, r.lse).inaccurate().empty(), factor < 1);
  }
}

// A query that sees its own key alone has a dQ of 0, and rounded O and dO make something else of it.
TEST(Norms, OfNothingAreNone) {
  Problem p = {1, 1, 1, 256, 256, 64, DType::fp16, Mask::none, attention::default_scale(64)};
  p.window_left = p.window_right = 0;
  ASSERT_TRUE(norms_count(p));
  const Results r(p);
  const auto of_dq = [&](float dq) {
    return r.reference
        .check_backward(std::vector<float>(p.q_size(), dq), std::vector<float>(p.kv_size()),
                        std::vector<float>(p.v_size()))
        .comparisons[0];
  };
  EXPECT_EQ(of_dq(1e-6f).norm, 0);
  EXPECT_GT(of_dq(1).error, of_dq(1).tolerance);
}

// About what rounding alone does to P and to O, each by half a step of 2^-11 (fp16) or 2^-8 (bf16) at most.
TEST(Norms, ToleranceIsSmall) {
  for (const auto& [dtype, epsilon] : {std::pair{DType::fp16, 0x1p-11}, std::pair{DType::bf16, 0x1p-8}}) {
    const Problem p = {1, 1, 1, 128, 128, 64, dtype, Mask::causal, attention::default_scale(64)};
    const Results r(p);
    const Verdict gradients = r.reference.check_backward(
        std::vector<float>(p.q_size()), std::vector<float>(p.kv_size()), std::vector<float>(p.kv_size()));
    for (const Comparison& c :
         {r.verdict().comparisons[0], gradients.comparisons[0], gradients.comparisons[1], gradients.comparisons[2]}) {
      EXPECT_GT(c.norm_tolerance, 0.3 * epsilon) << c.tensor;
      EXPECT_LT(c.norm_tolerance, epsilon) << c.tensor;
    }
    EXPECT_EQ(gradients.comparisons[0].norm, 1);  // of zeros
  }
}

TEST(Forward, NaNAndInfinityFail) {
  for (const float bad : {nan, inf, -inf}) {
    for (const size_t index : {size_t(0), size_t(8 * 8 + 7)}) {  // of a row that sees no key, and of one that does
      Results r(empty_rows);
      r.o[index] = bad;
      EXPECT_FALSE(r.verdict().passed()) << bad;
      EXPECT_NE(r.verdict().first_wrong(), "");
    }
    Results r(empty_rows);
    r.lse[8] = bad;
    EXPECT_FALSE(r.verdict().passed()) << bad;
    EXPECT_EQ(r.verdict().worst().tensor, "lse");
  }
  Results all(empty_rows);
  all.o.assign(all.o.size(), nan);
  EXPECT_FALSE(all.verdict().passed());
}

TEST(Forward, TheLseOfAnEmptyRowIsExactlyMinusInfinity) {
  for (const float bad : {0.0f, -1e30f, inf, nan}) {
    Results r(empty_rows);
    ASSERT_EQ(r.lse[3], -inf);
    r.lse[3] = bad;
    EXPECT_FALSE(r.verdict().passed()) << bad;
    EXPECT_EQ(r.verdict().first_wrong().find("lse[b=0, h=0, i=3] is "), 0u) << r.verdict().first_wrong();
  }
}

TEST(Forward, LseIsHeldToFp32) {
  Results r(empty_rows);
  r.lse[8] += 1e-3f;  // fp16 would be worse than that
  EXPECT_FALSE(r.verdict().passed());
}

TEST(Forward, MemoryWrittenToIsNoPass) {
  Verdict verdict = Results(empty_rows).verdict();
  verdict.problem = "memory next to o was written to";
  EXPECT_FALSE(verdict.passed());
  EXPECT_EQ(verdict.first_wrong(), verdict.problem);
}

// Too large to be compared whole.
const Problem large = {1, 2, 1, 8192, 8192, 64, DType::fp16, Mask::causal, attention::default_scale(64)};

TEST(Sampling, ComparesRowsOfEveryHeadAndLooksAtAllOthers) {
  const HostTensors inputs = make_inputs(large, InputKind::spread, 3);
  const Reference reference(large, inputs, false);
  const int sampled = int(reference.o().size()) / (2 * 64);
  ASSERT_GE(sampled, 100);
  ASSERT_LT(sampled, 8192);

  // Zeros are wrong where they are compared, and numbers elsewhere.
  std::vector<float> o(large.q_size(), 0.0f);
  const Verdict zeros = reference.check_forward(o, {});
  EXPECT_EQ(zeros.rows_checked, 2 * sampled);
  EXPECT_EQ(zeros.rows, 2 * 8192);
  EXPECT_FALSE(zeros.passed());
  EXPECT_EQ(zeros.first_wrong().find("o[b=0, h=0, i=0, "), 0u) << zeros.first_wrong();

  // A single number that was never written, anywhere, is enough.
  EXPECT_TRUE(std::isfinite(zeros.comparisons[0].error));
  for (const int row : {5, 4321, 8190, 8191}) {
    o[(size_t(8192) + row) * 64 + 63] = nan;
    EXPECT_TRUE(std::isnan(reference.check_forward(o, {}).comparisons[0].error)) << row;
    o[(size_t(8192) + row) * 64 + 63] = 0;
  }
}

TEST(Backward, ZerosAndNaNAreNoGradients) {
  const Problem p = {1, 4, 2, 33, 40, 64, DType::bf16, Mask::causal, attention::default_scale(64)};
  const Results r(p);
  std::vector<float> dq(p.q_size()), dk(p.kv_size()), dv(p.kv_size());
  const Verdict zeros = r.reference.check_backward(dq, dk, dv);
  ASSERT_EQ(zeros.comparisons.size(), 3u);
  for (const Comparison& c : zeros.comparisons) {
    EXPECT_FALSE(c.passed()) << c.tensor;
    EXPECT_GT(c.error, 5 * c.tolerance) << c.tensor << ": a tolerance as large as the gradients tests nothing";
  }
  dk.back() = nan;
  EXPECT_EQ(r.reference.check_backward(dq, dk, dv).worst().tensor, "dk");
}

// Halving P, by an LSE that is ln(2) larger, halves dV.
TEST(Backward, GradientsFollowFromTheOAndLseThatAreGiven) {
  const Problem p = {1, 1, 1, 20, 30, 64, DType::fp16, Mask::none, attention::default_scale(64)};
  const HostTensors inputs = make_inputs(p, InputKind::spread, 3);
  const Reference own(p, inputs, true);
  ForwardResult given = own.given();
  for (float& lse : given.lse) lse += float(std::log(2));
  const Reference reference(p, inputs, true, given);

  const std::vector<float> zero_q(p.q_size()), zero_k(p.kv_size());
  EXPECT_NEAR(2 * reference.check_backward(zero_q, zero_k, zero_k).comparisons[2].error,
              own.check_backward(zero_q, zero_k, zero_k).comparisons[2].error, 1e-5);
}

// The gradients of the whole problem agree with those of the rows that are compared, which are made from them alone.
TEST(Sampling, ComparesGradientsAndLooksAtAllOthers) {
  const Problem p = {1, 2, 1, 2200, 2100, 64, DType::fp16, Mask::causal, attention::default_scale(64)};
  const HostTensors inputs = make_inputs(p, InputKind::spread, 3);
  const Reference reference(p, inputs, true);
  const auto exact = reference::backward(p, inputs.q, inputs.k, inputs.v, inputs.d_o);
  const auto stored = [&](const std::vector<double>& x) {
    return from_storage(to_storage({x.begin(), x.end()}, p.dtype), p.dtype);
  };
  std::vector<float> dq = stored(exact.dq), dk = stored(exact.dk), dv = stored(exact.dv);
  const Verdict verdict = reference.check_backward(dq, dk, dv);
  EXPECT_TRUE(verdict.passed()) << verdict.first_wrong();
  EXPECT_GE(verdict.rows_checked, 200);
  EXPECT_LT(verdict.rows_checked, verdict.rows);

  for (std::vector<float>* gradient : {&dq, &dk, &dv}) {
    std::vector<float> whole(gradient->size(), 0.0f);
    gradient->swap(whole);
    EXPECT_FALSE(reference.check_backward(dq, dk, dv).passed());
    gradient->swap(whole);
    for (const size_t index : {size_t(5), gradient->size() / 2 + 77, gradient->size() - 1}) {
      const float before = std::exchange((*gradient)[index], nan);
      EXPECT_FALSE(reference.check_backward(dq, dk, dv).passed()) << index;
      (*gradient)[index] = before;
    }
  }
  EXPECT_TRUE(reference.check_backward(dq, dk, dv).passed());
}

}  // namespace
}  // namespace harness
