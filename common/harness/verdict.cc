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

// How many multiply-adds a reference may cost: a few seconds of one core, whatever the size of the problem.
constexpr double reference_budget = 4e9;

// Query rows to compare, the same in every head; all of them if they are cheap enough.
std::vector<int> sample_rows(const Problem& p) {
  constexpr double products = 4;  // Q K^T and P V, each once exactly and once for the baseline
  const double per_row = products * p.batch * p.heads * double(p.seq_k) * p.head_dim;
  const int affordable = int(std::max(8.0, std::min(double(p.seq_q), reference_budget / per_row)));
  std::set<int> rows;
  if (affordable >= p.seq_q) {
    for (int i = 0; i < p.seq_q; i++) rows.insert(i);
  } else {
    rows = {0, 1, p.seq_q - 1};
    std::mt19937 bits(12345);
    while (int(rows.size()) < affordable) {
      const int i = int(bits() % unsigned(p.seq_q));
      rows.insert(i);
      const int edge = i / 64 * 64;  // the last row of a tile of 64 and the first of the next
      rows.insert(edge);
      if (edge > 0) rows.insert(edge - 1);
    }
  }
  return {rows.begin(), rows.end()};
}

reference::Matrix rows_of(const reference::Matrix& all, const std::vector<int>& rows) {
  reference::Matrix some(rows.size(), all.cols());
  for (size_t r = 0; r < rows.size(); r++) some.row(r) = all.row(rows[r]);
  return some;
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

Reference::Reference(const Problem& p, const HostTensors& in, bool backward) : problem_(p) {
  if (backward) {
    for (int i = 0; i < p.seq_q; i++) sampled_.push_back(i);
  } else {
    sampled_ = sample_rows(p);
  }
  const reference::Round round = reference::rounding(p.dtype);
  const int rows = int(sampled_.size()), heads = p.batch * p.heads;
  std::vector<int> visible, positions;
  for (const int i : sampled_) {
    visible.push_back(p.visible_keys(i));
    positions.push_back(p.query_position(i));
  }
  const reference::Rope rope(p.rope ? p.rope_rows() : 0, p.head_dim);

  o_.expected.resize(size_t(heads) * rows * p.head_dim);
  o_.baseline.resize(o_.expected.size());
  lse_.resize(size_t(heads) * rows);
  lse_baseline_.resize(lse_.size());
  in_parallel(size_t(heads), [&](size_t index) {
    const int h = int(index);
    reference::Matrix q = rows_of(reference::head(in.q, h, p.seq_q, p.head_dim), sampled_);
    reference::Matrix k = reference::head(in.k, p.kv_head(h), p.seq_k, p.head_dim);
    const reference::Matrix v = reference::head(in.v, p.kv_head(h), p.seq_k, p.head_dim);
    if (p.rope) {
      q = reference::rotate(q, positions, rope);
      k = reference::rotate(k, reference::key_positions(p), rope);
    }
    const reference::Forward exact = reference::forward(q, k, v, p.scale, visible);
    if (p.rope) {  // the plain mathematics stores what it rotated
      q = q.unaryExpr(round).eval();
      k = k.unaryExpr(round).eval();
    }
    const reference::Vector lse = p.rope ? reference::forward(q, k, v, p.scale, visible).lse : exact.lse;
    const reference::Forward plain = reference::forward(q, k, v, p.scale, visible, round);
    std::copy_n(exact.o.data(), exact.o.size(), o_.expected.data() + size_t(h) * rows * p.head_dim);
    std::copy_n(plain.o.data(), plain.o.size(), o_.baseline.data() + size_t(h) * rows * p.head_dim);
    std::copy_n(exact.lse.data(), exact.lse.size(), lse_.data() + size_t(h) * rows);
    std::copy_n(lse.data(), lse.size(), lse_baseline_.data() + size_t(h) * rows);
  });

  if (backward) {
    auto exact = reference::backward(p, in.q, in.k, in.v, in.d_o, {.rope = p.rope ? &rope : nullptr});
    auto plain = reference::backward(p, in.q, in.k, in.v, in.d_o, {.round = round, .rope = p.rope ? &rope : nullptr});
    dq_ = {std::move(exact.dq), std::move(plain.dq)};
    dk_ = {std::move(exact.dk), std::move(plain.dk)};
    dv_ = {std::move(exact.dv), std::move(plain.dv)};
  }
}

// `got` is [heads, rows, D] of the whole problem, `expected` has the rows that were sampled (all, if rows are keys).
Comparison Reference::compare(const char* tensor, const std::vector<float>& got, const Expected& expected,
                              double factor, int heads, int rows) const {
  const int D = problem_.head_dim;
  const bool sampled = expected.expected.size() != got.size();
  const int compared = int(expected.expected.size() / heads / D);

  Comparison c;
  c.tensor = tensor;
  Worst baseline;
  for (size_t i = 0; i < expected.expected.size(); i++) baseline.add(expected.baseline[i], expected.expected[i]);
  constexpr double smallest = 1e-6;  // an absolute guard, for results that are nearly all zero
  c.tolerance = factor * baseline.error + 2 * rounding_of(expected.expected, problem_.dtype) + smallest;

  Worst worst;
  const auto compare_element = [&](int head, int row, int d, double value, double want) {
    worst.add(value, want);
    const bool close = value == want || std::abs(value - want) <= c.tolerance;
    if (!close && c.first_wrong.empty()) {
      const int heads_per_batch = heads / problem_.batch;
      c.first_wrong = describe(tensor, head / heads_per_batch, head % heads_per_batch, row, d, value, want);
    }
  };
  for (int head = 0; head < heads; head++) {
    for (int r = 0; r < compared; r++) {
      const int row = sampled ? sampled_[r] : r;
      for (int d = 0; d < D; d++)
        compare_element(head, row, d, got[(size_t(head) * rows + row) * D + d],
                        expected.expected[(size_t(head) * compared + r) * D + d]);
    }
    if (!sampled) continue;
    for (int row = 0; row < rows; row++)  // the rest must at least be numbers
      for (int d = 0; d < D; d++) {
        const double value = got[(size_t(head) * rows + row) * D + d];
        if (!std::isfinite(value)) compare_element(head, row, d, value, 0);
      }
  }
  c.error = worst.error;
  return c;
}

Verdict Reference::check_forward(const std::vector<float>& o, const std::vector<float>& lse) const {
  const Problem& p = problem_;
  const int heads = p.batch * p.heads, compared = int(sampled_.size());
  Verdict verdict;
  verdict.rows_checked = heads * compared;
  verdict.rows = heads * p.seq_q;
  verdict.comparisons.push_back(compare("o", o, o_, 2, heads, p.seq_q));
  if (lse.empty()) return verdict;

  // LSE stays in fp32: its error is that of a sum of fp32 logits, relative to their size; and, with RoPE, of Q and K that
  // were rounded once they were rotated.
  Comparison c;
  c.tensor = "lse";
  double largest = 1;
  Worst baseline;
  for (size_t i = 0; i < lse_.size(); i++) {
    if (std::isfinite(lse_[i])) largest = std::max(largest, std::abs(lse_[i]));
    baseline.add(lse_baseline_[i], lse_[i]);
  }
  c.tolerance = 2e-5 * largest + 2 * baseline.error;
  Worst worst;
  for (int head = 0; head < heads; head++)
    for (int r = 0; r < compared; r++) {
      const double got = lse[size_t(head) * p.seq_q + sampled_[r]], want = lse_[size_t(head) * compared + r];
      worst.add(got, want);
      if (!(got == want || std::abs(got - want) <= c.tolerance) && c.first_wrong.empty())
        c.first_wrong = describe("lse", head / p.heads, head % p.heads, sampled_[r], -1, got, want);
    }
  c.error = worst.error;
  verdict.comparisons.push_back(c);
  return verdict;
}

Verdict Reference::check_backward(const std::vector<float>& dq, const std::vector<float>& dk,
                                  const std::vector<float>& dv) const {
  const Problem& p = problem_;
  Verdict verdict;
  verdict.rows_checked = verdict.rows = p.batch * p.heads * p.seq_q;
  verdict.comparisons.push_back(compare("dq", dq, dq_, 3, p.batch * p.heads, p.seq_q));
  verdict.comparisons.push_back(compare("dk", dk, dk_, 3, p.batch * p.kv_heads, p.seq_k));
  verdict.comparisons.push_back(compare("dv", dv, dv_, 3, p.batch * p.kv_heads, p.seq_k));
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
  const std::vector<float> o(reference.o().begin(), reference.o().end());
  const std::vector<float> lse(reference.lse().begin(), reference.lse().end());
  device.o.upload(to_storage(o, p.dtype).data());
  device.lse.upload(lse.data());
}

Verdict run_forward(const attention::Forward& pass, const Problem& p, const HostTensors& inputs,
                    const Reference& reference, size_t guard) {
  DeviceTensors device(p, inputs, pass.workspace_bytes(p), false, guard);
  pass.run(p, device.forward_args(), nullptr);
  check(cudaDeviceSynchronize());
  Verdict verdict = reference.check_forward(download(device.o, p.dtype), pass.writes_lse ? download_fp32(device.lse)
                                                                                        : std::vector<float>());
  verdict.problem = device.broken_guard();
  return verdict;
}

Verdict run_backward(const attention::Backward& pass, const Problem& p, const HostTensors& inputs,
                     const Reference& reference, size_t guard) {
  DeviceTensors device(p, inputs, pass.workspace_bytes(p), true, guard);
  upload_forward(device, p, reference);
  pass.run(p, device.backward_args(), nullptr);
  check(cudaDeviceSynchronize());
  Verdict verdict = reference.check_backward(download(device.dq, p.dtype), download(device.dk, p.dtype),
                                             download(device.dv, p.dtype));
  verdict.problem = device.broken_guard();
  return verdict;
}

}  // namespace harness
