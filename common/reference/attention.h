// The book's definition of attention: forward, backward and RoPE in double precision, written to be read. Every
// kernel of every chapter is compared with it.
//
// The mathematics is in attention.cc and works on one head at a time, on matrices:
//
//   q, o, d_o, dq  [Nq, D]      k, v, dk, dv  [Nk, D]      s, p  [Nq, Nk]      lse  [Nq]
//
// If v has its own head dim, that is the D of v, o, d_o and dv.
//
// The mask says of each query row which keys it sees. A caller may therefore pass some of the query rows only, each
// with its keys, and gets exactly those rows of o, lse and dq (and their share of dk and dv).
//
// Formulas: Dao, "FlashAttention-2" (2023), section 2; Su et al., "RoFormer" (2021), section 3.2, with the pairs
// (i, i + D/2) of Llama and GPT-NeoX. Where those of the extras are from stands in attention/problem.h.
#pragma once

#include <Eigen/Core>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include "attention/problem.h"

namespace reference {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

// What becomes of a number when it is stored.
using Round = double (*)(double);
double exact(double x);                 // x
Round rounding(attention::DType type);  // to the nearest value of that type, through fp32 as a kernel does

// Which matrices are rounded. The definition keeps all of them exact. The *baselines* of tolerances do not: they are
// what the same mathematics gives when it is done in fp16 or bf16.
struct Rounding {
  Round sums = exact;      // S and dP, and what is made of them: P and dS
  Round operands = exact;  // P and dS where they enter a product
  Round results = exact;   // O, dQ, dK and dV; with RoPE, Q and K once they are rotated
  double largest = 0;  // P where it enters a product is rounded as so many times its row's largest element; 0: as it is
};
Rounding plain(attention::DType type);  // everything is stored in that type
Rounding tensor_cores(
    attention::DType type);  // only what tensor cores need so: sums stay in fp32, and P and dS with them
// A forward whose P is e4m3. Its row's largest is 1, or any number: then sqrt(2) stands for all, whose error is theirs
// in the mean.
Rounding eight_bits(attention::DType results, bool lagging);

// ---- One head ------------------------------------------------------------------------------------------------

// The mask, and what becomes of scale * q k^T before the softmax. A vector of counts is a mask alone.
struct Scores {
  Scores(std::vector<int> visible) : end(std::move(visible)), first(end.size()) {}  // row i sees the first visible[i]
  Scores(std::initializer_list<int> visible) : Scores(std::vector<int>(visible)) {}
  Scores(std::vector<int> from, std::vector<int> to) : end(std::move(to)), first(std::move(from)) {}

  std::vector<int> end, first;                             // row i sees the keys first[i] <= j < end[i],
  Eigen::Matrix<bool, -1, -1, Eigen::RowMajor> seen;       // [Nq, Nk], and of these the ones that are true; empty: all
  double softcap = 0;                                      // 0: none
  Matrix bias;                                             // [Nq, Nk], added after the softcap; empty: none
  double sink = -std::numeric_limits<double>::infinity();  // the score of one more key, whose value is zero
};

struct Forward {
  Matrix s;      // the scores, -inf where the mask hides the key
  Matrix slope;  // their derivative by scale * q k^T; empty if it is 1 everywhere
  Matrix p;      // softmax of the rows of s; a row that sees no key is zero
  Matrix o;      // p v
  Vector lse;    // log(sum(exp(s))) of each row, natural logarithm, never rounded; -inf for a row without any term
};

Forward forward(const Matrix& q, const Matrix& k, const Matrix& v, double scale, const Scores& scores,
                const Rounding& rounding = {});

// What backward() needs of a Forward, from what one has saved: o, and the lse by which P is made once more. Also for
// some of the keys only: `scores` then counts only those, and dk and dv are theirs.
Forward recomputed(const Matrix& q, const Matrix& k, const Matrix& o, const Vector& lse, double scale,
                   const Scores& scores, const Rounding& rounding = {});

struct Gradients {
  Matrix dp;  // d_o v^T, of every pair, also where the mask hides the key
  Vector d;   // sum(d_o * o) of each row
  Matrix ds;  // p * (dp - d) * slope
  Matrix dq;
  Matrix dk;
  Matrix dv;
};

// `forward` is what forward() or recomputed() made of the same q, k, v, scale and mask.
Gradients backward(const Matrix& q, const Matrix& k, const Matrix& v, const Forward& forward, const Matrix& d_o,
                   double scale, const Rounding& rounding = {});

// Of the sink, what each row adds to it: -sum(d_o * o), times the sink's weight there, which is exp(sink - lse).
Vector sink_gradient(const Matrix& o, const Vector& lse, const Matrix& d_o, double sink);

// ---- RoPE, rotate-half ---------------------------------------------------------------------------------------

// Row p holds the angles of position p: p * base^(-2 i / D) for pair i, as cosines and sines. [max_position, D/2]
struct Rope {
  Rope(int max_position, int head_dim, double base = 10000);

  Matrix cos;
  Matrix sin;
};

// Turns row r of x [N, D] by the angles of positions[r]: elements i and i + D/2 are the coordinates of pair i.
// A negative position turns the other way. |positions[r]| < max_position.
Matrix rotate(const Matrix& x, const std::vector<int>& positions, const Rope& rope);

// The inverse, which is the transpose: also takes the gradient of rotate(x) to the gradient of x.
Matrix rotate_back(const Matrix& x, const std::vector<int>& positions, const Rope& rope);

// Key j stands at position j; query i at i + seq_k - seq_q, so that the last query and the last key meet.
std::vector<int> query_positions(const attention::Problem& problem);
std::vector<int> key_positions(const attention::Problem& problem);

// ---- Whole problems ------------------------------------------------------------------------------------------
// Tensors are laid out as in attention/problem.h, widened to float on the way in.

// What the problem does with the scores of a query head (over all batches), for these of its rows and these keys:
// ascending, all of them unless they are given. `alibi` [B, H] has its slopes and `sink` [H] its sinks, if it has them.
Scores scores_of(const attention::Problem& problem, int head, std::span<const float> alibi, std::span<const float> sink,
                 const std::vector<int>* rows = nullptr, const std::vector<int>* keys = nullptr);

// visible_keys(i) of every query row.
std::vector<int> visible_keys(const attention::Problem& problem);

// Matrix number `index` of a tensor [.., rows, columns]: one head of it.
Matrix head(std::span<const float> tensor, int index, int rows, int columns);

struct Options {
  Rounding rounding = {};
  const Rope* rope = nullptr;  // if given, q and k are rotated first, and the gradients are of the unrotated ones
  std::span<const float> alibi = {}, sink = {};  // [B, H] and [H], if the problem has them
};

struct ForwardTensors {
  std::vector<double> o;    // [B, H, Nq, D]
  std::vector<double> lse;  // [B, H, Nq]
};

ForwardTensors forward(const attention::Problem& problem, std::span<const float> q, std::span<const float> k,
                       std::span<const float> v, const Options& options = {});

struct GradientTensors {
  std::vector<double> dq;      // [B, H, Nq, D]
  std::vector<double> dk;      // [B, Hkv, Nk, D], summed over the query heads that share the kv head
  std::vector<double> dv;      // [B, Hkv, Nk, D], likewise
  std::vector<double> d_sink;  // [H], summed over batches; empty unless the problem has sinks
};

GradientTensors backward(const attention::Problem& problem, std::span<const float> q, std::span<const float> k,
                         std::span<const float> v, std::span<const float> d_o, const Options& options = {});

}  // namespace reference
