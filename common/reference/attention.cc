#include "reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "attention/block_mask.h"
#include "device/fp8.h"
#include "device/numeric.h"

namespace reference {
namespace {

Matrix rounded(const Matrix& x, Round round) {
  if (round == exact) return x;
  return x.unaryExpr(round);
}

template <class T>
double round_to(double x) {
  return to_float(from_float<T>(float(x)));
}

}  // namespace

double exact(double x) { return x; }

Round rounding(attention::DType type) {
  return type == attention::DType::fp16 ? round_to<__half> : round_to<__nv_bfloat16>;
}

Rounding plain(attention::DType type) { return {rounding(type), rounding(type), rounding(type)}; }
Rounding tensor_cores(attention::DType type) { return {exact, rounding(type), rounding(type)}; }
Rounding eight_bits(attention::DType results, bool lagging) {
  return {exact, round_to<__nv_fp8_e4m3>, rounding(results), lagging ? std::numbers::sqrt2 : 1};
}

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

// Eigen's products are long to compile: each kind once. a b, a b^T and a^T b.
Matrix product(const Matrix& a, const Matrix& b) { return a * b; }
Matrix product_nt(const Matrix& a, const Matrix& b) { return a * b.transpose(); }
Matrix product_tn(const Matrix& a, const Matrix& b) { return a.transpose() * b; }

// exp(-inf) is 0. Eigen's is a number below the smallest normal one, and a processor multiplies those twenty times as
// slowly.
auto exp_or_0(const auto& x) { return (x == -inf).select(0, x.exp()); }

// S = softcap tanh(scale Q K^T / softcap) + bias
void make_scores(Forward& f, const Matrix& q, const Matrix& k, double scale, const Scores& scores, Round round) {
  f.s = rounded(scale * product_nt(q, k), round);
  if (scores.softcap > 0) {
    const Matrix tanh = (f.s / scores.softcap).array().tanh();
    f.s = rounded(scores.softcap * tanh, round);
    f.slope = 1 - tanh.array().square();
  }
  if (scores.bias.size() > 0) f.s = rounded(f.s + scores.bias, round);
  for (Eigen::Index i = 0; i < q.rows(); i++) {
    f.s.row(i).head(std::min(scores.first[i], scores.end[i])).setConstant(-inf);
    f.s.row(i).tail(k.rows() - scores.end[i]).setConstant(-inf);
  }
  if (scores.seen.size() > 0) f.s = scores.seen.select(f.s, -inf);
}

}  // namespace

// S = scale Q K^T      P = softmax(S) = exp(S - LSE)      O = P V
Forward forward(const Matrix& q, const Matrix& k, const Matrix& v, double scale, const Scores& scores,
                const Rounding& rounding) {
  Forward f;
  make_scores(f, q, k, scale, scores, rounding.sums);

  f.p = Matrix::Zero(q.rows(), k.rows());
  f.lse = Vector::Constant(q.rows(), scores.sink);
  for (Eigen::Index i = 0; i < q.rows(); i++) {
    const int first = scores.first[i], visible = scores.end[i] - first;
    if (visible <= 0) continue;
    const auto s = f.s.row(i).segment(first, visible).array();
    const double m = std::max(s.maxCoeff(), scores.sink);  // exp(s - m) <= 1: no overflow, however large the logits
    if (m == -inf) continue;                               // a block mask hides all of them
    f.lse(i) = m + std::log(exp_or_0(s - m).sum() + std::exp(scores.sink - m));
    f.p.row(i).segment(first, visible) = exp_or_0(s - f.lse(i));
  }
  f.p = rounded(f.p, rounding.sums);

  if (rounding.largest > 0) {
    const Vector largest = f.p.rowwise().maxCoeff().cwiseMax(std::numeric_limits<double>::min()) /  // a row may be zero
                           rounding.largest;
    const Matrix p = largest.asDiagonal() * rounded(largest.cwiseInverse().asDiagonal() * f.p, rounding.operands);
    f.o = rounded(product(p, v), rounding.results);
  } else {
    f.o = rounded(product(rounded(f.p, rounding.operands), v), rounding.results);
  }
  return f;
}

// P = exp(S - LSE). S is not rounded: with an LSE that was not either, the rows of P would no longer add up to 1, and
// the baseline would have an error that no plain computation makes.
Forward recomputed(const Matrix& q, const Matrix& k, const Matrix& o, const Vector& lse, double scale,
                   const Scores& scores, const Rounding& rounding) {
  Forward f = {.s = {}, .slope = {}, .p = Matrix::Zero(q.rows(), k.rows()), .o = o, .lse = lse};
  make_scores(f, q, k, scale, scores, exact);
  for (Eigen::Index i = 0; i < q.rows(); i++) {
    const int first = scores.first[i], visible = scores.end[i] - first;
    if (visible <= 0 || lse(i) == -inf) continue;
    f.p.row(i).segment(first, visible) = exp_or_0(f.s.row(i).segment(first, visible).array() - lse(i));
  }
  f.p = rounded(f.p, rounding.sums);
  return f;
}

// The forward from its last line to its first. Each line there gives the gradients of its operands here.
Gradients backward(const Matrix& q, const Matrix& k, const Matrix& v, const Forward& forward, const Matrix& d_o,
                   double scale, const Rounding& rounding) {
  const Matrix &p = forward.p, &o = forward.o;
  Gradients g;

  // O = P V
  g.dv = rounded(product_tn(rounded(p, rounding.operands), d_o), rounding.results);
  g.dp = rounded(product_nt(d_o, v), rounding.sums);

  // P = softmax(S): dS_ij = P_ij (dP_ij - sum_j P_ij dP_ij), and that sum is D_i = sum_d dO_id O_id.
  // Where the mask hides a key P is 0, and so is dS.
  g.d = d_o.cwiseProduct(o).rowwise().sum();
  g.ds = p.cwiseProduct(g.dp.colwise() - g.d);
  if (forward.slope.size() > 0) g.ds = g.ds.cwiseProduct(forward.slope);  // S = softcap tanh(..)
  g.ds = rounded(rounded(g.ds, rounding.sums), rounding.operands);

  // S = scale Q K^T
  g.dq = rounded(scale * product(g.ds, k), rounding.results);
  g.dk = rounded(scale * product_tn(g.ds, q), rounding.results);
  return g;
}

// The sink is a key with V = 0: its dP is 0, and its dS = P (0 - D).
Vector sink_gradient(const Matrix& o, const Vector& lse, const Matrix& d_o, double sink) {
  const Vector d = d_o.cwiseProduct(o).rowwise().sum();
  return -(sink - lse.array()).exp() * d.array();
}

Rope::Rope(int max_position, int head_dim, double base)
    : cos(max_position, head_dim / 2), sin(max_position, head_dim / 2) {
  for (int position = 0; position < max_position; position++) {
    for (int i = 0; i < head_dim / 2; i++) {
      const double theta = std::pow(base, -2.0 * i / head_dim);
      cos(position, i) = std::cos(position * theta);
      sin(position, i) = std::sin(position * theta);
    }
  }
}

Matrix rotate(const Matrix& x, const std::vector<int>& positions, const Rope& rope) {
  const Eigen::Index half = x.cols() / 2;
  Matrix y(x.rows(), x.cols());
  for (Eigen::Index r = 0; r < x.rows(); r++) {
    const int position = std::abs(positions[r]);
    const double sign = positions[r] < 0 ? -1 : 1;
    const auto cos = rope.cos.row(position).array();
    const auto sin = sign * rope.sin.row(position).array();
    const auto x1 = x.row(r).head(half).array(), x2 = x.row(r).tail(half).array();
    y.row(r).head(half) = x1 * cos - x2 * sin;
    y.row(r).tail(half) = x1 * sin + x2 * cos;
  }
  return y;
}

Matrix rotate_back(const Matrix& x, const std::vector<int>& positions, const Rope& rope) {
  std::vector<int> opposite(positions.size());
  for (size_t r = 0; r < positions.size(); r++) opposite[r] = -positions[r];
  return rotate(x, opposite, rope);
}

std::vector<int> query_positions(const attention::Problem& problem) {
  std::vector<int> positions(problem.seq_q);
  std::iota(positions.begin(), positions.end(), problem.seq_k - problem.seq_q);
  return positions;
}

std::vector<int> key_positions(const attention::Problem& problem) {
  std::vector<int> positions(problem.seq_k);
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

std::vector<int> visible_keys(const attention::Problem& problem) {
  std::vector<int> visible(problem.seq_q);
  for (int i = 0; i < problem.seq_q; i++) visible[i] = problem.visible_keys(i);
  return visible;
}

Scores scores_of(const attention::Problem& p, int head, std::span<const float> alibi, std::span<const float> sink,
                 const std::vector<int>* some_rows, const std::vector<int>* some_keys) {
  std::vector<int> rows, keys, first, end;
  for (int i = 0; i < p.seq_q && !some_rows; i++) rows.push_back(i);
  for (int j = 0; j < p.seq_k && !some_keys; j++) keys.push_back(j);
  if (some_rows) rows = *some_rows;
  if (some_keys) keys = *some_keys;
  const auto number_before = [&](int j) { return int(std::lower_bound(keys.begin(), keys.end(), j) - keys.begin()); };
  for (const int i : rows) {
    const attention::Problem::Span span = p.keys_of(i);
    first.push_back(number_before(span.first));
    end.push_back(number_before(span.end));
  }
  Scores scores(std::move(first), std::move(end));
  scores.softcap = p.softcap;
  if (attention::extras(p) & attention::blocks) {
    scores.seen.resize(Eigen::Index(rows.size()), Eigen::Index(keys.size()));
    for (size_t r = 0; r < rows.size(); r++)
      for (size_t c = 0; c < keys.size(); c++)
        scores.seen(Eigen::Index(r), Eigen::Index(c)) = attention::sees(p, head, rows[r], keys[c]);
  }
  if (p.sink) scores.sink = sink[head % p.heads];
  if (p.alibi) {
    scores.bias.resize(Eigen::Index(rows.size()), Eigen::Index(keys.size()));
    for (size_t r = 0; r < rows.size(); r++)
      for (size_t c = 0; c < keys.size(); c++)
        scores.bias(Eigen::Index(r), Eigen::Index(c)) =
            -double(alibi[head]) * std::abs(p.query_position(rows[r]) - keys[c]);
  }
  return scores;
}

Matrix head(std::span<const float> tensor, int index, int rows, int columns) {
  using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const FloatMatrix>(tensor.data() + size_t(index) * rows * columns, rows, columns).cast<double>();
}

namespace {

// A head of a tensor of doubles, to be written to.
Eigen::Map<Matrix> writable_head(std::vector<double>& tensor, int index, int rows, int columns) {
  return {tensor.data() + size_t(index) * rows * columns, rows, columns};
}

// What one query head works on.
struct Head {
  Matrix q, k, v;
};

Head load(const attention::Problem& problem, std::span<const float> q, std::span<const float> k,
          std::span<const float> v, int query_head, const Options& options) {
  const int kv_head = problem.kv_head(query_head);
  Head h = {head(q, query_head, problem.seq_q, problem.head_dim), head(k, kv_head, problem.seq_k, problem.head_dim),
            head(v, kv_head, problem.seq_k, problem.v_dim())};
  if (options.rope) {
    h.q = rounded(rotate(h.q, query_positions(problem), *options.rope), options.rounding.results);
    h.k = rounded(rotate(h.k, key_positions(problem), *options.rope), options.rounding.results);
  }
  return h;
}

}  // namespace

ForwardTensors forward(const attention::Problem& problem, std::span<const float> q, std::span<const float> k,
                       std::span<const float> v, const Options& options) {
  ForwardTensors out = {std::vector<double>(problem.o_size()), std::vector<double>(problem.lse_size())};
  for (int h = 0; h < problem.batch * problem.heads; h++) {
    const Head in = load(problem, q, k, v, h, options);
    const Scores scores = scores_of(problem, h, options.alibi, options.sink);
    const Forward f = forward(in.q, in.k, in.v, problem.scale, scores, options.rounding);
    writable_head(out.o, h, problem.seq_q, problem.v_dim()) = f.o;
    writable_head(out.lse, h, problem.seq_q, 1) = f.lse;
  }
  return out;
}

GradientTensors backward(const attention::Problem& problem, std::span<const float> q, std::span<const float> k,
                         std::span<const float> v, std::span<const float> d_o, const Options& options) {
  GradientTensors out = {std::vector<double>(problem.q_size()), std::vector<double>(problem.kv_size()),
                         std::vector<double>(problem.v_size()), std::vector<double>(problem.sink_size())};
  for (int h = 0; h < problem.batch * problem.heads; h++) {
    const Head in = load(problem, q, k, v, h, options);
    const Matrix in_d_o = head(d_o, h, problem.seq_q, problem.v_dim());
    const Scores scores = scores_of(problem, h, options.alibi, options.sink);
    const Forward f = forward(in.q, in.k, in.v, problem.scale, scores, options.rounding);
    Gradients g = backward(in.q, in.k, in.v, f, in_d_o, problem.scale, options.rounding);
    if (problem.sink) out.d_sink[h % problem.heads] += sink_gradient(f.o, f.lse, in_d_o, scores.sink).sum();
    if (options.rope) {
      g.dq = rounded(rotate_back(g.dq, query_positions(problem), *options.rope), options.rounding.results);
      g.dk = rounded(rotate_back(g.dk, key_positions(problem), *options.rope), options.rounding.results);
    }
    writable_head(out.dq, h, problem.seq_q, problem.head_dim) = g.dq;
    auto dk = writable_head(out.dk, problem.kv_head(h), problem.seq_k, problem.head_dim);
    auto dv = writable_head(out.dv, problem.kv_head(h), problem.seq_k, problem.v_dim());
    dk = rounded(dk + g.dk, options.rounding.results);  // query heads that share a kv head add up
    dv = rounded(dv + g.dv, options.rounding.results);
  }
  return out;
}

}  // namespace reference
