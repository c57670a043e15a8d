#include "harness/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "harness/parallel.h"
#include "reference/attention.h"

namespace harness {
namespace {

using attention::DType;
using attention::Problem;

constexpr double inf = std::numeric_limits<double>::infinity();

// What tensor cores may lose of a sum of products in eight bits, for each product, relative to the sum: they align the
// 32 products of an instruction, and the sum so far, with the largest of these, and keep 13 bits behind its leading one
// (tests/device/fp8_test.cc). Half of the 13th is lost in the mean.
constexpr double fp8_sum_loss = 0x1p-14;

// How many multiply-adds a reference may cost: a few seconds of one core, whatever the size of the problem.
constexpr double reference_budget = 6e9;

// How many of n rows to compare in each of `heads` heads, if one costs `per_row` multiply-adds.
int affordable_rows(int n, int heads, double per_row) {
  return int(std::min(double(n), std::max(8.0, reference_budget / (heads * per_row))));
}

// Which `count` of n rows; others for each seed.
std::vector<int> sample_rows(int n, int count, unsigned seed) {
  std::set<int> rows;
  const auto add = [&](int row) {
    if (row >= 0 && row < n && int(rows.size()) < count) rows.insert(row);
  };
  if (count == n)
    for (int i = 0; i < n; i++) add(i);
  for (const int row : {0, n - 1, 1}) add(row);
  std::mt19937 bits(12345 + seed);
  while (int(rows.size()) < count) {
    const int i = int(bits() % unsigned(n)), edge = i / 64 * 64;
    for (const int row : {i, edge, edge - 1}) add(row);  // a random one, the first of its tile of 64, the one before
  }
  return {rows.begin(), rows.end()};
}

std::vector<std::vector<int>> sample_heads(int heads, int n, int count) {
  std::vector<std::vector<int>> rows;
  for (int head = 0; head < heads; head++) rows.push_back(sample_rows(n, count, unsigned(head)));
  return rows;
}

reference::Matrix rows_of(const reference::Matrix& all, const std::vector<int>& rows) {
  reference::Matrix some(rows.size(), all.cols());
  for (size_t r = 0; r < rows.size(); r++) some.row(r) = all.row(rows[r]);
  return some;
}

std::vector<int> query_positions(const Problem& p, const std::vector<int>& rows) {
  std::vector<int> positions;
  for (const int i : rows) positions.push_back(p.query_position(i));
  return positions;
}

// max |(ref + 0.3 - 0.3) - ref| in the storage type: what rounding alone does to numbers as large as these.
double rounding_of(const std::vector<double>& expected, DType dtype) {
  const reference::Round round = reference::rounding(dtype);
  double largest = 0;
  for (const double x : expected) {
    const double stored = round(x);
    largest = std::max(largest, std::abs(round(round(stored + 0.3) - 0.3) - stored));
  }
  return largest;
}

// The largest |a - b|; NaN if any of them is. Equal infinities are equal.
struct Worst {
  double error = 0;
  void add(double got, double expected) {
    const double difference = got == expected ? 0 : std::abs(got - expected);
    if (std::isnan(error)) return;
    if (!(difference <= error)) error = difference;
  }
};

// |a - b| and |b| of vectors, a pair of elements at a time.
struct Distance {
  double squares = 0, of_expected = 0;
  void add(double got, double expected) {
    squares += (got - expected) * (got - expected);
    of_expected += expected * expected;
  }
  // 0 also if all that is expected is 0, as dQ is where a query sees one key: elements alone are compared then.
  double relative() const { return of_expected == 0 ? 0 : std::sqrt(squares / of_expected); }
};

std::string describe(const char* tensor, int b, int h, int row, int column, double got, double expected) {
  char line[200];
  const bool has_column = column >= 0;
  const std::string index = "b=" + std::to_string(b) + ", h=" + std::to_string(h) + ", i=" + std::to_string(row) +
                            (has_column ? ", d=" + std::to_string(column) : "");
  std::snprintf(line, sizeof line, "%s[%s] is %g, expected %g", tensor, index.c_str(), got, expected);
  return line;
}

}  // namespace

bool Verdict::passed() const {
  return problem.empty() && !comparisons.empty() &&
         std::all_of(comparisons.begin(), comparisons.end(), [](const Comparison& c) { return c.passed(); });
}

const Comparison& Verdict::worst() const {
  const auto badness = [](const Comparison& c) { return std::isnan(c.error) ? inf : c.error / c.tolerance; };
  return *std::max_element(comparisons.begin(), comparisons.end(),
                           [&](const auto& a, const auto& b) { return badness(a) < badness(b); });
}

std::string Verdict::first_wrong() const {
  for (const Comparison& c : comparisons)
    if (!c.passed()) return c.first_wrong;
  return problem;
}

void Verdict::add(const Verdict& one, int sequence) {
  rows_checked += one.rows_checked;
  rows += one.rows;
  for (const Comparison& its : one.comparisons) {
    const auto known = std::find_if(comparisons.begin(), comparisons.end(),
                                    [&](const Comparison& c) { return c.tensor == its.tensor; });
    if (known == comparisons.end()) {
      comparisons.push_back(its);
      continue;
    }
    Verdict both;
    both.comparisons = {*known, its};
    if (known->passed() && !its.passed())
      known->first_wrong = "of sequence " + std::to_string(sequence) + ", " + its.first_wrong;
    const Comparison &worst = both.worst(), &least_accurate = both.least_accurate();
    known->error = worst.error, known->tolerance = worst.tolerance;
    known->norm = least_accurate.norm, known->norm_tolerance = least_accurate.norm_tolerance;
  }
}

std::string Verdict::inaccurate() const {
  const Comparison& worst = least_accurate();
  if (worst.norm <= worst.norm_tolerance) return "";
  char line[200];
  std::snprintf(line, sizeof line, "the error of %s has a norm of %.3g (relative) where %.3g is allowed",
                worst.tensor.c_str(), worst.norm, worst.norm_tolerance);
  return line;
}

const Comparison& Verdict::least_accurate() const {
  const auto badness = [](const Comparison& c) { return std::isnan(c.norm) ? inf : c.norm / c.norm_tolerance; };
  return *std::max_element(comparisons.begin(), comparisons.end(),
                           [&](const auto& a, const auto& b) { return badness(a) < badness(b); });
}

bool norms_count(const Problem& p) {
  return !p.packed && std::min(p.seq_q, p.seq_k) >= 64 && p.seq_k <= 4096 &&
         double(p.batch) * p.heads * p.seq_q * p.seq_k >= 0x1p16;
}

namespace {

// Takes a sequence's part of a tensor after the other.
class Parts {
 public:
  explicit Parts(const std::vector<float>& all) : at_(all.begin()) {}
  std::vector<float> next(size_t count) {
    const auto begin = at_;
    return {begin, at_ += long(count)};
  }

 private:
  std::vector<float>::const_iterator at_;
};

}  // namespace

Reference::Reference(const Problem& p, const HostTensors& inputs, bool backward, ForwardResult given)
    : problem_(p), given_(std::move(given)) {
  if (p.packed) {
    Parts q(inputs.q), k(inputs.k), v(inputs.v), d_o(inputs.d_o), slopes(inputs.alibi), o(given_.o), lse(given_.lse);
    const bool is_given = !given_.lse.empty();
    for (const Problem& one : sequences(p)) {
      const HostTensors its_inputs = {q.next(one.q_size()),   k.next(one.kv_size()),         v.next(one.v_size()),
                                      d_o.next(one.o_size()), slopes.next(one.alibi_size()), inputs.sink};
      sequences_.push_back(
          {one, its_inputs, backward,
           is_given ? ForwardResult{o.next(one.o_size()), lse.next(one.lse_size())} : ForwardResult()});
      if (is_given || !backward) continue;
      const ForwardResult& its = sequences_.back().given_;
      given_.o.insert(given_.o.end(), its.o.begin(), its.o.end());
      given_.lse.insert(given_.lse.end(), its.lse.begin(), its.lse.end());
    }
    d_sink_.resize(backward ? p.sink_size() : 0);
    d_sink_size_.resize(d_sink_.size());
    for (Reference& one : sequences_) {
      one.given_ = {};
      for (size_t h = 0; h < one.d_sink_.size(); h++)
        d_sink_[h] += one.d_sink_[h], d_sink_size_[h] += one.d_sink_size_[h];
    }
    return;
  }
  const bool from_its_own = backward && given_.o.empty();
  if (given_.o.empty()) expect_forward(inputs, from_its_own);
  if (from_its_own) {
    const std::vector<float> o(o_.expected.begin(), o_.expected.end());
    given_ = {from_storage(to_storage(o, p.dtype), p.dtype), {lse_.begin(), lse_.end()}};
  }
  if (backward) expect_gradients(inputs);
  for (Expected* one : {&o_, &dq_, &dk_, &dv_}) {
    Distance distance;
    for (size_t i = 0; i < one->expected.size(); i++) distance.add(one->tensor_cores[i], one->expected[i]);
    one->norm_baseline = distance.relative();
    one->tensor_cores = {};
  }
}

void Reference::write(std::ostream& to) const {
  for (const Reference& one : sequences_) one.write(to);
  for (const std::vector<float>* values : {&given_.o, &given_.lse}) write_values(to, *values);
  for (const std::vector<double>* values : {&lse_, &lse_baseline_, &d_sink_, &d_sink_size_}) write_values(to, *values);
  for (const Expected* one : {&o_, &dq_, &dk_, &dv_}) {
    write_values(to, std::vector<size_t>{one->rows.size()});
    for (const std::vector<int>& rows : one->rows) write_values(to, rows);
    write_values(to, one->expected);
    write_values(to, one->baseline);
    write_values(to, std::vector<double>{one->norm_baseline});
  }
}

Reference Reference::read(std::istream& from, const Problem& problem) {
  Reference reference;
  reference.problem_ = problem;
  if (problem.packed)
    for (const Problem& one : sequences(problem)) reference.sequences_.push_back(read(from, one));
  for (std::vector<float>* values : {&reference.given_.o, &reference.given_.lse}) read_values(from, *values);
  for (std::vector<double>* values :
       {&reference.lse_, &reference.lse_baseline_, &reference.d_sink_, &reference.d_sink_size_})
    read_values(from, *values);
  for (Expected* one : {&reference.o_, &reference.dq_, &reference.dk_, &reference.dv_}) {
    std::vector<size_t> heads;
    read_values(from, heads);
    one->rows.resize(heads.at(0));
    for (std::vector<int>& rows : one->rows) read_values(from, rows);
    read_values(from, one->expected);
    read_values(from, one->baseline);
    std::vector<double> norm;
    read_values(from, norm);
    one->norm_baseline = norm.at(0);
  }
  return reference;
}

void Reference::expect_forward(const HostTensors& given, bool whole) {
  const Problem p = in_eight_bits(problem_);
  const HostTensors rounded = p.eight_bits ? in_eight_bits(problem_, given) : HostTensors();
  const HostTensors& in = p.eight_bits ? rounded : given;
  const reference::Round round = reference::rounding(p.dtype);
  const reference::Rope rope(p.rope ? p.rope_rows() : 0, p.head_dim);
  const int heads = p.batch * p.heads;
  constexpr double products = 6;  // Q K^T and P V, each once exactly and once for each baseline
  const int rows =
      whole ? p.seq_q : affordable_rows(p.seq_q, heads, products * p.seq_k * std::max(p.head_dim, p.v_dim()));

  o_.rows = sample_heads(heads, p.seq_q, rows);
  o_.expected.resize(size_t(heads) * rows * p.v_dim());
  o_.baseline.resize(o_.expected.size());
  o_.tensor_cores.resize(o_.expected.size());
  lse_.resize(size_t(heads) * rows);
  lse_baseline_.resize(lse_.size());
  in_parallel(size_t(heads), [&](size_t index) {
    const int h = int(index);
    const reference::Scores scores = reference::scores_of(p, h, in.alibi, in.sink, &o_.rows[h]);
    auto q = rows_of(reference::head(in.q, h, p.seq_q, p.head_dim), o_.rows[h]);
    auto k = reference::head(in.k, p.kv_head(h), p.seq_k, p.head_dim);
    const auto v = reference::head(in.v, p.kv_head(h), p.seq_k, p.v_dim());
    if (p.rope) {
      q = reference::rotate(q, query_positions(p, o_.rows[h]), rope);
      k = reference::rotate(k, reference::key_positions(p), rope);
    }
    const reference::Forward exact = reference::forward(q, k, v, p.scale, scores);
    if (p.rope) {  // the plain mathematics stores what it rotated
      q = q.unaryExpr(round).eval();
      k = k.unaryExpr(round).eval();
    }
    const reference::Vector lse = p.rope ? reference::forward(q, k, v, p.scale, scores).lse : exact.lse;
    using namespace reference;
    const reference::Forward plain = reference::forward(
        q, k, v, p.scale, scores,
        p.eight_bits ? eight_bits(p.dtype, p.eight_bits >= attention::lagging_max) : reference::plain(p.dtype));
    const reference::Forward tensor_cores =
        p.eight_bits ? plain : reference::forward(q, k, v, p.scale, scores, reference::tensor_cores(p.dtype));
    const auto keep = [&](const reference::Matrix& o, std::vector<double>& to) {
      std::copy_n(o.data(), o.size(), to.data() + size_t(h) * rows * p.v_dim());
    };
    keep(exact.o, o_.expected);
    keep(plain.o, o_.baseline);
    keep(tensor_cores.o, o_.tensor_cores);
    std::copy_n(exact.lse.data(), exact.lse.size(), lse_.data() + size_t(h) * rows);
    std::copy_n(lse.data(), lse.size(), lse_baseline_.data() + size_t(h) * rows);
  });
}

void Reference::expect_gradients(const HostTensors& in) {
  const Problem& p = problem_;
  const int D = p.head_dim, Dv = p.v_dim();
  const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads, group = p.heads / p.kv_heads;
  constexpr double products = 3 * 5;  // each once exactly and once for each baseline
  const int n_queries = affordable_rows(p.seq_q, heads, products * p.seq_k * std::max(D, Dv));
  const int n_keys = affordable_rows(p.seq_k, heads, products * p.seq_q * std::max(D, Dv));
  dq_.rows = sample_heads(heads, p.seq_q, n_queries);
  dk_.rows = dv_.rows = sample_heads(kv_heads, p.seq_k, n_keys);
  for (const auto& [gradient, size] : {std::pair(&dq_, size_t(heads) * n_queries * D),
                                       {&dk_, size_t(kv_heads) * n_keys * D},
                                       {&dv_, size_t(kv_heads) * n_keys * Dv}})
    for (auto* values : {&gradient->expected, &gradient->baseline, &gradient->tensor_cores}) values->resize(size);

  // What tensor cores add up stays in fp32 until it is stored: also over a group of heads, and to be rotated back.
  using reference::exact;
  const reference::Round round = reference::rounding(p.dtype);
  const struct {
    std::vector<double> Expected::*values;
    reference::Rounding rounding;  // of the mathematics,
    reference::Round rotated;      // of Q and K once they are rotated, with RoPE,
    reference::Round added;        // of each sum over some of the heads of a group, and of what is rotated back,
    reference::Round stored;       // and of the results
  } ways[] = {{&Expected::expected, {}, exact, exact, exact},
              {&Expected::baseline, reference::plain(p.dtype), round, round, round},
              {&Expected::tensor_cores, {.operands = round}, round, exact, round}};
  const reference::Rope rope(p.rope ? p.rope_rows() : 0, D);
  d_sink_.resize(p.sink_size());
  d_sink_size_.resize(p.sink_size());
  for (int h = 0; h < heads && p.sink; h++) {
    const reference::Vector of_rows =
        reference::sink_gradient(reference::head(given_.o, h, p.seq_q, Dv), reference::head(given_.lse, h, p.seq_q, 1),
                                 reference::head(in.d_o, h, p.seq_q, Dv), in.sink[h % p.heads]);
    d_sink_[h % p.heads] += of_rows.sum();
    d_sink_size_[h % p.heads] += of_rows.cwiseAbs().sum();
  }
  in_parallel(size_t(kv_heads), [&](size_t index) {
    const int kv_head = int(index);
    const std::vector<int>& keys = dk_.rows[kv_head];
    const auto k_given = reference::head(in.k, kv_head, p.seq_k, D), v = reference::head(in.v, kv_head, p.seq_k, Dv);
    const auto some_v = rows_of(v, keys);
    for (const auto& way : ways) {
      const auto part = [&](Expected& gradient, int head, int n, int columns) {
        return Eigen::Map<reference::Matrix>((gradient.*way.values).data() + size_t(head) * n * columns, n, columns);
      };
      const auto rotated = [&](const reference::Matrix& x, const std::vector<int>& positions) -> reference::Matrix {
        if (!p.rope) return x;
        return reference::rotate(x, positions, rope).unaryExpr(way.rotated);
      };
      const auto rotated_back = [&](const reference::Matrix& x,
                                    const std::vector<int>& positions) -> reference::Matrix {
        if (!p.rope) return x;
        return reference::rotate_back(x, positions, rope).unaryExpr(way.added);
      };
      const auto k = rotated(k_given, reference::key_positions(p));
      const auto some_k = rows_of(k, keys);
      auto dk = part(dk_, kv_head, n_keys, D), dv = part(dv_, kv_head, n_keys, Dv);
      for (int h = kv_head * group; h < (kv_head + 1) * group; h++) {
        const std::vector<int>& queries = dq_.rows[h];
        const auto q_given = reference::head(in.q, h, p.seq_q, D), d_o = reference::head(in.d_o, h, p.seq_q, Dv);
        const auto o = reference::head(given_.o, h, p.seq_q, Dv), lse = reference::head(given_.lse, h, p.seq_q, 1);
        const auto q = rotated(q_given, reference::query_positions(p));
        const auto scores_of_keys = reference::scores_of(p, h, in.alibi, in.sink, nullptr, &keys);
        const auto of_keys = reference::recomputed(q, some_k, o, lse, p.scale, scores_of_keys, way.rounding);
        const reference::Gradients g = reference::backward(q, some_k, some_v, of_keys, d_o, p.scale, way.rounding);

        const auto dq_of = [&](const std::vector<int>& queries) {
          const auto scores = reference::scores_of(p, h, in.alibi, in.sink, &queries);
          const auto some_q = rows_of(q, queries), some_o = rows_of(o, queries);
          const auto of_queries =
              reference::recomputed(some_q, k, some_o, rows_of(lse, queries), p.scale, scores, way.rounding);
          return reference::backward(some_q, k, v, of_queries, rows_of(d_o, queries), p.scale, way.rounding).dq;
        };
        const bool all = n_queries == p.seq_q && n_keys == p.seq_k;
        part(dq_, h, n_queries, D) =
            rotated_back(all ? g.dq : dq_of(queries), query_positions(p, queries)).unaryExpr(way.stored);

        dk = (dk + rotated_back(g.dk, keys)).unaryExpr(way.added).eval();  // query heads that share a kv head add up
        dv = (dv + g.dv).unaryExpr(way.added).eval();
      }
      dk = dk.unaryExpr(way.stored).eval();
      dv = dv.unaryExpr(way.stored).eval();
    }
  });
}

// `got` is [heads, rows, D] of the whole problem, `expected` has the rows that are compared.
Comparison Reference::compare(const char* tensor, const std::vector<float>& got, const Expected& expected,
                              double factor) const {
  const int heads = int(expected.rows.size());
  Comparison c;
  c.tensor = tensor;
  if (got.empty()) {  // of a sequence that has no queries, or no keys
    c.tolerance = 1;
    return c;
  }
  const int D = int(expected.expected.size() / heads / expected.rows[0].size()), rows = int(got.size() / heads / D);
  Worst baseline;
  for (size_t i = 0; i < expected.expected.size(); i++) baseline.add(expected.baseline[i], expected.expected[i]);
  constexpr double smallest = 1e-6;  // an absolute guard, for results that are nearly all zero
  c.tolerance = factor * baseline.error + 2 * rounding_of(expected.expected, problem_.dtype) + smallest;

  Worst worst;
  Distance distance;
  const auto compare_element = [&](int head, int row, int d, double value, double want) {
    worst.add(value, want);
    const bool close = value == want || std::abs(value - want) <= c.tolerance;
    if (!close && c.first_wrong.empty()) {
      const int heads_per_batch = heads / problem_.batch;
      c.first_wrong = describe(tensor, head / heads_per_batch, head % heads_per_batch, row, d, value, want);
    }
  };
  const double* want = expected.expected.data();
  for (int head = 0; head < heads; head++) {
    for (const int row : expected.rows[head])
      for (int d = 0; d < D; d++) {
        const double value = got[(size_t(head) * rows + row) * D + d];
        distance.add(value, *want);
        compare_element(head, row, d, value, *want++);
      }
    for (int row = 0; row < rows; row++)  // the rest must at least be numbers
      for (int d = 0; d < D; d++) {
        const double value = got[(size_t(head) * rows + row) * D + d];
        if (!std::isfinite(value)) compare_element(head, row, d, value, 0);
      }
  }
  c.error = worst.error;
  c.norm = distance.relative();
  c.norm_tolerance = 1.1 * expected.norm_baseline + 0x1p-20;
  return c;
}

Verdict Reference::check_forward(const std::vector<float>& o, const std::vector<float>& lse) const {
  const Problem& p = problem_;
  const int heads = p.batch * p.heads;
  Verdict verdict;
  if (p.packed) {
    Parts o_parts(o), lse_parts(lse);
    for (size_t b = 0; b < sequences_.size(); b++) {
      const Problem& one = sequences_[b].problem_;
      verdict.add(
          sequences_[b].check_forward(o_parts.next(one.o_size()), lse.empty() ? lse : lse_parts.next(one.lse_size())),
          int(b));
    }
    return verdict;
  }
  verdict.rows_checked = int(lse_.size());
  verdict.rows = heads * p.seq_q;
  verdict.comparisons.push_back(compare("o", o, o_, 2));
  if (lse.empty()) return verdict;

  // LSE stays in fp32: its error is that of a sum of fp32 logits, relative to their size; and, with RoPE, of Q and K
  // that were rounded once they were rotated.
  Comparison c;
  c.tensor = "lse";
  double largest = 1;
  Worst baseline;
  for (size_t i = 0; i < lse_.size(); i++) {
    if (std::isfinite(lse_[i])) largest = std::max(largest, std::abs(lse_[i]));
    baseline.add(lse_baseline_[i], lse_[i]);
  }
  c.tolerance = 2e-5 * largest + 2 * baseline.error;
  if (p.eight_bits) c.tolerance += fp8_sum_loss * p.head_dim * largest;
  Worst worst;
  const double* want = lse_.data();
  for (int head = 0; head < heads; head++)
    for (const int row : o_.rows[head]) {
      const double got = lse[size_t(head) * p.seq_q + row];
      worst.add(got, *want);
      if (!(got == *want || std::abs(got - *want) <= c.tolerance) && c.first_wrong.empty())
        c.first_wrong = describe("lse", head / p.heads, head % p.heads, row, -1, got, *want);
      want++;
    }
  c.error = worst.error;
  verdict.comparisons.push_back(c);
  return verdict;
}

Verdict Reference::check_backward(const std::vector<float>& dq, const std::vector<float>& dk,
                                  const std::vector<float>& dv, const std::vector<float>& d_sink) const {
  const Problem& p = problem_;
  Verdict verdict;
  if (p.packed) {
    Parts dq_parts(dq), dk_parts(dk), dv_parts(dv);
    for (size_t b = 0; b < sequences_.size(); b++) {
      const Problem& one = sequences_[b].problem_;
      verdict.add(sequences_[b].check_backward(dq_parts.next(one.q_size()), dk_parts.next(one.kv_size()),
                                               dv_parts.next(one.v_size())),
                  int(b));
    }
  } else {
    verdict.rows_checked = int(dq_.expected.size()) / p.head_dim;
    verdict.rows = p.batch * p.heads * p.seq_q;
    verdict.comparisons.push_back(compare("dq", dq, dq_, 3));
    verdict.comparisons.push_back(compare("dk", dk, dk_, 3));
    verdict.comparisons.push_back(compare("dv", dv, dv_, 3));
  }
  if (!d_sink.empty()) {
    Comparison c;
    c.tensor = "d_sink";
    Worst worst;
    for (size_t h = 0; h < d_sink_.size(); h++) {
      const double tolerance = 1e-5 * d_sink_size_[h] + 1e-6;  // of a sum in fp32 that may nearly cancel
      worst.add(d_sink[h], d_sink_[h]);
      c.tolerance = std::max(c.tolerance, tolerance);
      if (!(std::abs(d_sink[h] - d_sink_[h]) <= tolerance) && c.first_wrong.empty())
        c.first_wrong = "d_sink[h=" + std::to_string(h) + "] is " + std::to_string(d_sink[h]) + ", expected " +
                        std::to_string(d_sink_[h]);
    }
    c.error = worst.error;
    verdict.comparisons.push_back(c);
  }
  return verdict;
}

namespace {

std::vector<float> download(const GuardedBuffer& buffer, DType dtype) {
  std::vector<uint16_t> bits(buffer.bytes() / sizeof(uint16_t));
  buffer.download(bits.data());
  return from_storage(bits, dtype);
}

std::vector<float> download_fp32(const GuardedBuffer& buffer) {
  std::vector<float> values(buffer.bytes() / sizeof(float));
  buffer.download(values.data());
  return values;
}

}  // namespace

void upload_forward(DeviceTensors& device, const Problem& p, const Reference& reference) {
  device.o.upload(to_storage(reference.given().o, p.dtype).data());
  device.lse.upload(reference.given().lse.data());
}

ForwardResult forward_result(const attention::Forward& pass, const Problem& p, const HostTensors& inputs) {
  DeviceTensors device(p, inputs, pass.workspace_bytes(p), false);
  pass.run(p, device.forward_args(), nullptr);
  check(cudaDeviceSynchronize());
  return {download(device.o, p.dtype), download_fp32(device.lse)};
}

Verdict check_forward(const DeviceTensors& device, const Problem& p, const Reference& reference, bool writes_lse) {
  Verdict verdict = reference.check_forward(download(device.o, p.dtype),
                                            writes_lse ? download_fp32(device.lse) : std::vector<float>());
  verdict.problem = device.broken_guard();
  return verdict;
}

Verdict check_backward(const DeviceTensors& device, const Problem& p, const Reference& reference) {
  Verdict verdict = reference.check_backward(download(device.dq, p.dtype), download(device.dk, p.dtype),
                                             download(device.dv, p.dtype), download_fp32(device.d_sink));
  verdict.problem = device.broken_guard();
  return verdict;
}

Verdict run_forward(const attention::Forward& pass, const Problem& p, const HostTensors& inputs,
                    const Reference& reference, size_t guard) {
  DeviceTensors device(p, inputs, pass.workspace_bytes(p), false, guard);
  pass.run(p, device.forward_args(), nullptr);
  check(cudaDeviceSynchronize());
  return check_forward(device, p, reference, pass.writes_lse);
}

Verdict run_backward(const attention::Backward& pass, const Problem& p, const HostTensors& inputs,
                     const Reference& reference, size_t guard) {
  DeviceTensors device(p, inputs, pass.workspace_bytes(p), true, guard);
  upload_forward(device, p, reference);
  pass.run(p, device.backward_args(), nullptr);
  check(cudaDeviceSynchronize());
  return check_backward(device, p, reference);
}

}  // namespace harness
