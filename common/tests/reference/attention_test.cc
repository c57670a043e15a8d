// The forward against attention written out as loops, and the backward against finite differences of the forward.
#include "reference/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace reference {
namespace {

using attention::DType;
using attention::Mask;
using attention::Problem;

constexpr double inf = std::numeric_limits<double>::infinity();

Problem make_problem(int heads, int kv_heads, int seq_q, int seq_k, int head_dim, Mask mask) {
  Problem problem = {.batch = 2,
                     .heads = heads,
                     .kv_heads = kv_heads,
                     .seq_q = seq_q,
                     .seq_k = seq_k,
                     .head_dim = head_dim,
                     .mask = mask};
  problem.scale = attention::default_scale(head_dim);
  return problem;
}

// Name of a problem in a failure message.
std::string describe(const Problem& p) {
  return "heads " + std::to_string(p.heads) + "/" + std::to_string(p.kv_heads) + ", seq " + std::to_string(p.seq_q) +
         "x" + std::to_string(p.seq_k) + ", D " + std::to_string(p.head_dim) + ", " + name(p.mask) + ", window " +
         std::to_string(p.window_left) + "," + std::to_string(p.window_right) + ", softcap " +
         std::to_string(p.softcap) + (p.alibi ? ", ALiBi" : "") + (p.sink ? ", sink" : "") + ", D of V " +
         std::to_string(p.v_dim());
}

// Every relation that the definition distinguishes: N = 1, seq_q below, at and above seq_k, rows that see no key
// (causal with seq_q > seq_k), several query heads for one kv head.
const std::vector<Problem> problems = {
    make_problem(1, 1, 1, 1, 2, Mask::none),    make_problem(1, 1, 1, 1, 4, Mask::causal),
    make_problem(2, 2, 5, 5, 4, Mask::none),    make_problem(2, 2, 5, 5, 4, Mask::causal),
    make_problem(2, 1, 3, 7, 8, Mask::none),    make_problem(2, 1, 3, 7, 8, Mask::causal),
    make_problem(4, 2, 7, 3, 6, Mask::none),    make_problem(4, 2, 7, 3, 6, Mask::causal),
    make_problem(6, 2, 1, 9, 4, Mask::causal),  make_problem(3, 1, 9, 1, 4, Mask::causal),
    make_problem(3, 3, 4, 6, 16, Mask::causal),
};

struct Extra {
  int left = -1, right = -1;
  float softcap = 0;
  bool alibi = false, sink = false;
  int head_dim_v = 0;
};
Problem with(const Extra& extra, Problem p) {
  p.window_left = extra.left, p.window_right = extra.right, p.softcap = extra.softcap;
  p.alibi = extra.alibi, p.sink = extra.sink;
  p.head_dim_v = extra.head_dim_v;
  return p;
}

// Each extra alone, with rows and keys that see nothing, and all of them together.
const std::vector<Problem> problems_with_extras = {
    with({.left = 2, .right = 1}, make_problem(2, 1, 6, 6, 4, Mask::none)),
    with({.left = 0, .right = 0}, make_problem(2, 1, 3, 7, 4, Mask::none)),
    with({.left = 1, .right = 1}, make_problem(2, 1, 7, 3, 4, Mask::none)),
    with({.left = 2}, make_problem(2, 2, 5, 7, 4, Mask::causal)),
    with({.right = 2}, make_problem(2, 2, 7, 5, 4, Mask::none)),
    with({.softcap = 1.5}, make_problem(2, 1, 4, 6, 4, Mask::causal)),
    with({.alibi = true}, make_problem(4, 2, 4, 6, 4, Mask::none)),
    with({.sink = true}, make_problem(4, 2, 6, 4, 4, Mask::causal)),
    with({.head_dim_v = 4}, make_problem(4, 2, 6, 4, 6, Mask::causal)),
    with({.head_dim_v = 6}, make_problem(2, 1, 3, 5, 4, Mask::none)),
    with({.left = 3, .right = 1, .softcap = 2, .alibi = true, .sink = true, .head_dim_v = 2},
         make_problem(4, 2, 6, 7, 4, Mask::none)),
};

// Logits with a spread of several units.
std::vector<float> random_tensor(size_t size, unsigned seed, float spread = 1.5f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> tensor(size);
  for (float& x : tensor) x = normal(random);
  return tensor;
}

struct Inputs {
  explicit Inputs(const Problem& p)
      : q(random_tensor(p.q_size(), 1)),
        k(random_tensor(p.kv_size(), 2)),
        v(random_tensor(p.v_size(), 3)),
        d_o(random_tensor(p.o_size(), 4)),
        alibi(random_tensor(p.alibi_size(), 5, 0.3f)),
        sink(random_tensor(p.sink_size(), 6)) {}
  std::vector<float> q, k, v, d_o, alibi, sink;
};

// One element of O (and of LSE) from the formula alone: indices, loops, no maximum, no matrices.
double o_element(const Problem& p, const Inputs& in, int b, int h, int i, int d, double* lse) {
  const int group = p.heads / p.kv_heads;
  double numerator = 0, denominator = 0;
  for (int j = 0; j < p.seq_k; j++) {
    const int own = i + p.seq_k - p.seq_q;
    if (p.mask == Mask::causal && j > own) continue;
    if ((p.window_left >= 0 && j < own - p.window_left) || (p.window_right >= 0 && j > own + p.window_right)) continue;
    const size_t q_row = (size_t(b) * p.heads + h) * p.seq_q + i;
    const size_t k_row = (size_t(b) * p.kv_heads + h / group) * p.seq_k + j;
    double s = 0;
    for (int e = 0; e < p.head_dim; e++) s += double(in.q[q_row * p.head_dim + e]) * in.k[k_row * p.head_dim + e];
    s *= p.scale;
    if (p.softcap > 0) s = p.softcap * std::tanh(s / p.softcap);
    if (p.alibi) s -= double(in.alibi[size_t(b) * p.heads + h]) * std::abs(own - j);
    const double weight = std::exp(s);
    numerator += weight * in.v[k_row * p.v_dim() + d];
    denominator += weight;
  }
  if (p.sink) denominator += std::exp(double(in.sink[h]));
  *lse = std::log(denominator);
  return denominator == 0 ? 0 : numerator / denominator;
}

void expect_the_formula(const std::vector<Problem>& of) {
  for (const Problem& p : of) {
    SCOPED_TRACE(describe(p));
    const Inputs in(p);
    const ForwardTensors out = forward(p, in.q, in.k, in.v, {.alibi = in.alibi, .sink = in.sink});
    size_t row = 0;
    for (int b = 0; b < p.batch; b++) {
      for (int h = 0; h < p.heads; h++) {
        for (int i = 0; i < p.seq_q; i++, row++) {
          double lse = 0;
          for (int d = 0; d < p.v_dim(); d++)
            ASSERT_NEAR(out.o[row * p.v_dim() + d], o_element(p, in, b, h, i, d, &lse), 1e-12);
          if (lse == -inf)
            ASSERT_EQ(out.lse[row], -inf);
          else
            ASSERT_NEAR(out.lse[row], lse, 1e-12);
        }
      }
    }
  }
}

TEST(Forward, IsTheFormulaWrittenAsLoops) { expect_the_formula(problems); }
TEST(Forward, IsTheFormulaWrittenAsLoopsWithExtras) { expect_the_formula(problems_with_extras); }

// sum(dO * O), whose gradients backward() computes.
double loss(const Problem& p, const Inputs& in, Options options) {
  options.alibi = in.alibi, options.sink = in.sink;
  const ForwardTensors out = forward(p, in.q, in.k, in.v, options);
  double sum = 0;
  for (size_t n = 0; n < out.o.size(); n++) sum += in.d_o[n] * out.o[n];
  return sum;
}

// Each element of `x` (one of in's tensors) is moved by a step that float holds exactly, either way.
void expect_gradient(const Problem& p, Inputs& in, std::vector<float>& x, const std::vector<double>& gradient,
                     const Options& options) {
  constexpr float step = 1.0f / 4096;
  ASSERT_EQ(gradient.size(), x.size());
  for (size_t n = 0; n < x.size(); n++) {
    const float here = std::round(x[n] * 4096) / 4096;
    x[n] = here + step;
    const double above = loss(p, in, options);
    x[n] = here - step;
    const double below = loss(p, in, options);
    x[n] = here;
    ASSERT_NEAR(gradient[n], (above - below) / (2 * step), 2e-5) << "element " << n;
  }
}

// Both with and without RoPE, whose gradients go back through the rotation.
void expect_gradients(const Problem& p, Options options) {
  Inputs in(p);
  options.alibi = in.alibi, options.sink = in.sink;
  for (auto* x : {&in.q, &in.k, &in.v, &in.sink})
    for (float& element : *x) element = std::round(element * 4096) / 4096;
  const GradientTensors g = backward(p, in.q, in.k, in.v, in.d_o, options);
  {
    SCOPED_TRACE("dQ");
    expect_gradient(p, in, in.q, g.dq, options);
  }
  {
    SCOPED_TRACE("dK");
    expect_gradient(p, in, in.k, g.dk, options);
  }
  {
    SCOPED_TRACE("dV");
    expect_gradient(p, in, in.v, g.dv, options);
  }
  {
    SCOPED_TRACE("dsink");
    expect_gradient(p, in, in.sink, g.d_sink, options);
  }
}

TEST(Backward, IsTheDerivativeOfTheForward) {
  for (const Problem& p : problems) {
    SCOPED_TRACE(describe(p));
    expect_gradients(p, {});
  }
}

TEST(Backward, IsTheDerivativeOfTheForwardWithExtras) {
  for (const Problem& p : problems_with_extras) {
    SCOPED_TRACE(describe(p));
    expect_gradients(p, {});
  }
}

TEST(Backward, IsTheDerivativeOfTheForwardWithRope) {
  for (const Problem& p : problems) {
    SCOPED_TRACE(describe(p));
    const Rope rope(std::max(p.seq_q, p.seq_k), p.head_dim);
    expect_gradients(p, {.rope = &rope});
  }
}

TEST(Forward, RowsThatSeeNoKeyAreZero) {
  const Problem p = make_problem(1, 1, 5, 2, 4, Mask::causal);
  const Inputs in(p);
  const ForwardTensors out = forward(p, in.q, in.k, in.v);
  const GradientTensors g = backward(p, in.q, in.k, in.v, in.d_o);
  for (int i = 0; i < 3; i++) {
    EXPECT_EQ(out.lse[i], -inf);
    for (int d = 0; d < 4; d++) {
      EXPECT_EQ(out.o[i * 4 + d], 0);
      EXPECT_EQ(g.dq[i * 4 + d], 0);
    }
  }
  EXPECT_NEAR(out.o[3 * 4], in.v[0], 1e-15);  // row 3 sees exactly key 0
  EXPECT_GT(out.lse[4], -inf);
}

// The largest logit wins, and nothing overflows: exp(1000) is not a double.
TEST(Forward, LargeLogitsStayFinite) {
  for (const double logit : {100.0, 1000.0, -100.0, -1000.0}) {
    SCOPED_TRACE(logit);
    const Matrix q{{1.0, 0.0}};
    const Matrix k{{logit, 0.0}, {logit / 2, 0.0}, {0.0, 0.0}};
    const Matrix v{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}};
    const Forward f = forward(q, k, v, 1.0, {3});
    const int winner = logit > 0 ? 0 : 2;
    EXPECT_NEAR(f.p.sum(), 1, 1e-12);
    EXPECT_NEAR(f.lse(0), std::max(logit, 0.0), 1e-12);
    EXPECT_NEAR((f.o - v.row(winner)).norm(), 0, 1e-12);
    const Gradients g = backward(q, k, v, f, Matrix{{1.0, -1.0}}, 1.0);
    EXPECT_TRUE(g.dq.allFinite() && g.dk.allFinite() && g.dv.allFinite());
  }
}

TEST(Forward, EqualLogitsGiveTheMeanAndLogOfTheCount) {
  const Matrix q = Matrix::Zero(3, 4), k = Matrix::Random(5, 4), v = Matrix::Random(5, 4);
  const Forward f = forward(q, k, v, 0.5, {1, 4, 5});
  EXPECT_NEAR((f.o.row(1) - v.topRows(4).colwise().mean()).norm(), 0, 1e-15);
  EXPECT_NEAR(f.lse(0), 0, 1e-15);
  EXPECT_NEAR(f.lse(1), std::log(4.0), 1e-15);
  EXPECT_NEAR(f.lse(2), std::log(5.0), 1e-15);
}

TEST(Forward, SampledRowsAreTheRowsOfTheWhole) {
  const Problem p = make_problem(1, 1, 9, 6, 8, Mask::causal);
  const Inputs in(p);
  const Matrix q = head(in.q, 1, p.seq_q, p.head_dim), k = head(in.k, 1, p.seq_k, p.head_dim),
               v = head(in.v, 1, p.seq_k, p.head_dim), d_o = head(in.d_o, 1, p.seq_q, p.head_dim);
  const Forward whole = forward(q, k, v, p.scale, visible_keys(p));
  const Gradients whole_gradients = backward(q, k, v, whole, d_o, p.scale);

  const std::vector<int> rows = {0, 4, 8};
  std::vector<int> visible;
  for (const int i : rows) visible.push_back(p.visible_keys(i));
  const Matrix some_q = q(rows, Eigen::all), some_d_o = d_o(rows, Eigen::all);
  const Forward some = forward(some_q, k, v, p.scale, visible);
  const Gradients some_gradients = backward(some_q, k, v, some, some_d_o, p.scale);
  for (size_t r = 0; r < rows.size(); r++) {
    EXPECT_NEAR((some.o.row(r) - whole.o.row(rows[r])).norm(), 0, 1e-14);
    EXPECT_NEAR((some_gradients.dq.row(r) - whole_gradients.dq.row(rows[r])).norm(), 0, 1e-14);
  }
}

// From what a forward saves a backward can make a few rows of the gradients alone, queries or keys.
TEST(Backward, SomeKeysAndQueriesFromOAndLse) {
  const Problem p = make_problem(1, 1, 9, 6, 8, Mask::causal);
  const Inputs in(p);
  const Matrix q = head(in.q, 0, p.seq_q, p.head_dim), k = head(in.k, 0, p.seq_k, p.head_dim),
               v = head(in.v, 0, p.seq_k, p.head_dim), d_o = head(in.d_o, 0, p.seq_q, p.head_dim);
  const Forward f = forward(q, k, v, p.scale, visible_keys(p));
  const Gradients whole = backward(q, k, v, f, d_o, p.scale);

  const std::vector<int> rows = {0, 4, 8};
  const Matrix some_q = q(rows, Eigen::all), some_o = f.o(rows, Eigen::all), some_d_o = d_o(rows, Eigen::all);
  std::vector<int> visible;
  for (const int i : rows) visible.push_back(p.visible_keys(i));
  const Forward of_queries = recomputed(some_q, k, some_o, f.lse(rows), p.scale, visible);
  const Gradients of_rows = backward(some_q, k, v, of_queries, some_d_o, p.scale);
  for (size_t r = 0; r < rows.size(); r++) EXPECT_NEAR((of_rows.dq.row(r) - whole.dq.row(rows[r])).norm(), 0, 1e-13);

  const std::vector<int> keys = {1, 2, 5};
  const Matrix some_k = k(keys, Eigen::all), some_v = v(keys, Eigen::all);
  visible.clear();
  for (int i = 0; i < p.seq_q; i++)
    visible.push_back(int(std::count_if(keys.begin(), keys.end(), [&](int j) { return j < p.visible_keys(i); })));
  const Gradients of_keys =
      backward(q, some_k, some_v, recomputed(q, some_k, f.o, f.lse, p.scale, visible), d_o, p.scale);
  for (size_t c = 0; c < keys.size(); c++) {
    EXPECT_NEAR((of_keys.dk.row(c) - whole.dk.row(keys[c])).norm(), 0, 1e-13);
    EXPECT_NEAR((of_keys.dv.row(c) - whole.dv.row(keys[c])).norm(), 0, 1e-13);
  }
}

// The baseline errs like the storage type: its results are values of that type, off by a few of its roundings.
TEST(Baseline, ErrsLikeTheStorageType) {
  const Problem p = make_problem(4, 2, 33, 40, 16, Mask::causal);
  const Inputs in(p);
  const ForwardTensors o = forward(p, in.q, in.k, in.v);
  const GradientTensors g = backward(p, in.q, in.k, in.v, in.d_o);
  const auto worst = [](const std::vector<double>& a, const std::vector<double>& b) {
    double error = 0;
    for (size_t n = 0; n < a.size(); n++) error = std::max(error, std::abs(a[n] - b[n]));
    return error;
  };
  for (const DType dtype : {DType::fp16, DType::bf16}) {
    SCOPED_TRACE(name(dtype));
    const double epsilon = dtype == DType::fp16 ? 1.0 / 2048 : 1.0 / 256;  // half an ulp of 1
    const Options options = {.rounding = plain(dtype)};
    const ForwardTensors rounded_o = forward(p, in.q, in.k, in.v, options);
    const GradientTensors rounded_g = backward(p, in.q, in.k, in.v, in.d_o, options);
    for (const double x : rounded_o.o) ASSERT_EQ(x, rounding(dtype)(x));
    for (const double x : rounded_g.dk) ASSERT_EQ(x, rounding(dtype)(x));
    for (const auto& [error, limit] : {std::pair{worst(o.o, rounded_o.o), 30 * epsilon},
                                       {worst(g.dq, rounded_g.dq), 200 * epsilon},
                                       {worst(g.dk, rounded_g.dk), 200 * epsilon},
                                       {worst(g.dv, rounded_g.dv), 200 * epsilon}}) {
      EXPECT_GT(error, epsilon / 4);
      EXPECT_LT(error, limit);
    }
  }
}

// Where sums stay as they are, so do S, dP and P: dS has the error of one rounding, and the results of two.
TEST(Baseline, OfTensorCoresRoundsOperandsAndResultsAlone) {
  const DType dtype = DType::fp16;
  const Problem p = make_problem(1, 1, 33, 40, 16, Mask::causal);
  const Inputs in(p);
  const Matrix q = head(in.q, 0, 33, 16), k = head(in.k, 0, 40, 16), v = head(in.v, 0, 40, 16);
  const Matrix d_o = head(in.d_o, 0, 33, 16);
  const Round round = rounding(dtype);
  const Forward exact_f = forward(q, k, v, p.scale, visible_keys(p));
  const Forward f = forward(q, k, v, p.scale, visible_keys(p), tensor_cores(dtype));
  EXPECT_EQ(f.s, exact_f.s);
  EXPECT_EQ(f.p, exact_f.p);
  EXPECT_EQ(f.o, (exact_f.p.unaryExpr(round) * v).unaryExpr(round));

  const Gradients g = backward(q, k, v, exact_f, d_o, p.scale, tensor_cores(dtype));
  const Vector d = d_o.cwiseProduct(exact_f.o).rowwise().sum();
  const Matrix ds = exact_f.p.cwiseProduct((d_o * v.transpose()).colwise() - d).unaryExpr(round);
  EXPECT_EQ(g.dv, (exact_f.p.unaryExpr(round).transpose() * d_o).unaryExpr(round));
  EXPECT_EQ(g.dq, (p.scale * ds * k).unaryExpr(round));
  EXPECT_EQ(g.dk, (p.scale * ds.transpose() * q).unaryExpr(round));
}

TEST(Rounding, IsToTheNearestValueTiesToEven) {
  const Round fp16 = rounding(DType::fp16), bf16 = rounding(DType::bf16);
  EXPECT_EQ(exact(1.0 / 3), 1.0 / 3);
  EXPECT_EQ(fp16(1 + 1.0 / 2048), 1);  // between 1 and 1 + 2^-10: a tie, to even
  EXPECT_EQ(fp16(1 + 3.0 / 2048), 1 + 2.0 / 1024);
  EXPECT_EQ(bf16(1 + 1.0 / 256), 1);  // between 1 and 1 + 2^-7
  EXPECT_EQ(bf16(1 + 3.0 / 256), 1 + 2.0 / 128);
  EXPECT_EQ(fp16(65504), 65504);
  EXPECT_EQ(fp16(65520), inf);
}

}  // namespace
}  // namespace reference
