#include "reference/attention.h"

#include <cmath>
#include <limits>
#include <numeric>

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

// S = scale Q K^T      P = softmax(S) = exp(S - LSE)      O = P V
Forward forward(const Matrix& q, const Matrix& k, const Matrix& v, double scale, const std::vector<int>& visible,
                const Rounding& rounding) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  Forward f;

  f.s = rounded(scale * q * k.transpose(), rounding.sums);

  f.p = Matrix::Zero(q.rows(), k.rows());
  f.lse = Vector::Constant(q.rows(), -inf);
  for (Eigen::Index i = 0; i < q.rows(); i++) {
    f.s.row(i).tail(k.rows() - visible[i]).setConstant(-inf);
    if (visible[i] == 0) continue;
    const auto s = f.s.row(i).head(visible[i]).array();
    const double m = s.maxCoeff();  // exp(s - m) <= 1: no overflow, however large the logits
    f.lse(i) = m + std::log((s - m).exp().sum());
    f.p.row(i).head(visible[i]) = (s - f.lse(i)).exp();
  }
  f.p = rounded(f.p, rounding.sums);

  f.o = rounded(rounded(f.p, rounding.operands) * v, rounding.results);
  return f;
}

// P = exp(S - LSE). S is not rounded: with an LSE that was not either, the rows of P would no longer add up to 1, and
// the baseline would have an error that no plain computation makes.
Forward recomputed(const Matrix& q, const Matrix& k, const Matrix& o, const Vector& lse, double scale,
                   const std::vector<int>& visible, const Rounding& rounding) {
  Forward f = {.s = scale * q * k.transpose(), .p = Matrix::Zero(q.rows(), k.rows()), .o = o, .lse = lse};
  for (Eigen::Index i = 0; i < q.rows(); i++) {
    f.s.row(i).tail(k.rows() - visible[i]).setConstant(-std::numeric_limits<double>::infinity());
    f.p.row(i).head(visible[i]) = (f.s.row(i).head(visible[i]).array() - lse(i)).exp();
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
  g.dv = rounded(rounded(p, rounding.operands).transpose() * d_o, rounding.results);
  g.dp = rounded(d_o * v.transpose(), rounding.sums);

  // P = softmax(S): dS_ij = P_ij (dP_ij - sum_j P_ij dP_ij), and that sum is D_i = sum_d dO_id O_id.
  // Where the mask hides a key P is 0, and so is dS.
  g.d = d_o.cwiseProduct(o).rowwise().sum();
  g.ds = rounded(rounded(p.cwiseProduct(g.dp.colwise() - g.d), rounding.sums), rounding.operands);

  // S = scale Q K^T
  g.dq = rounded(scale * g.ds * k, rounding.results);
  g.dk = rounded(scale * g.ds.transpose() * q, rounding.results);
  return g;
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
            head(v, kv_head, problem.seq_k, problem.head_dim)};
  if (options.rope) {
    h.q = rounded(rotate(h.q, query_positions(problem), *options.rope), options.rounding.results);
    h.k = rounded(rotate(h.k, key_positions(problem), *options.rope), options.rounding.results);
  }
  return h;
}

}  // namespace

ForwardTensors forward(const attention::Problem& problem, std::span<const float> q, std::span<const float> k,
                       std::span<const float> v, const Options& options) {
  ForwardTensors out = {std::vector<double>(problem.q_size()), std::vector<double>(problem.lse_size())};
  for (int h = 0; h < problem.batch * problem.heads; h++) {
    const Head in = load(problem, q, k, v, h, options);
    const Forward f = forward(in.q, in.k, in.v, problem.scale, visible_keys(problem), options.rounding);
    writable_head(out.o, h, problem.seq_q, problem.head_dim) = f.o;
    writable_head(out.lse, h, problem.seq_q, 1) = f.lse;
  }
  return out;
}

GradientTensors backward(const attention::Problem& problem, std::span<const float> q, std::span<const float> k,
                         std::span<const float> v, std::span<const float> d_o, const Options& options) {
  GradientTensors out = {std::vector<double>(problem.q_size()), std::vector<double>(problem.kv_size()),
                         std::vector<double>(problem.kv_size())};
  for (int h = 0; h < problem.batch * problem.heads; h++) {
    const Head in = load(problem, q, k, v, h, options);
    const Forward f = forward(in.q, in.k, in.v, problem.scale, visible_keys(problem), options.rounding);
    Gradients g =
        backward(in.q, in.k, in.v, f, head(d_o, h, problem.seq_q, problem.head_dim), problem.scale, options.rounding);
    if (options.rope) {
      g.dq = rounded(rotate_back(g.dq, query_positions(problem), *options.rope), options.rounding.results);
      g.dk = rounded(rotate_back(g.dk, key_positions(problem), *options.rope), options.rounding.results);
    }
    writable_head(out.dq, h, problem.seq_q, problem.head_dim) = g.dq;
    auto dk = writable_head(out.dk, problem.kv_head(h), problem.seq_k, problem.head_dim);
    auto dv = writable_head(out.dv, problem.kv_head(h), problem.seq_k, problem.head_dim);
    dk = rounded(dk + g.dk, options.rounding.results);  // query heads that share a kv head add up
    dv = rounded(dv + g.dv, options.rounding.results);
  }
  return out;
}

}  // namespace reference
