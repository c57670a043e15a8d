#include "tests/chapter/non_finite.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>
#include <type_traits>

#include "harness/verdict.h"
#include "reference/attention.h"
#include "tests/chapter/references.h"

namespace chapter_suite {
namespace {

using attention::DType;
using attention::Mask;
using attention::Problem;
using harness::HostTensors;
using harness::in_eight_bits;
using reference::Matrix;

constexpr int query = 40, element = 5;

int key_of(const Problem& p) { return p.seq_k > 200 ? 188 : 60; }

void put(const Problem& p, float x, HostTensors& in) {
  const auto at = [&](std::vector<float>& tensor, int head, int rows, int row) -> float& {
    return tensor[(size_t(head) * rows + row) * p.head_dim + element];
  };
  const int group = p.heads / p.kv_heads;
  at(in.k, 0, p.seq_k, key_of(p)) = x;
  at(in.v, 1, p.seq_k, key_of(p)) = x;
  at(in.q, 2 * group, p.seq_q, query) = x;
  at(in.d_o, 3 * group, p.seq_q, query) = x;
}

// A tensor in two ways: each row of it from the keys that the row sees and no others; and as products of whole matrices
// have it, where a hidden key weighs 0.
struct Expected {
  std::vector<double> seen, whole;
  explicit Expected(size_t size) : seen(size), whole(size) {}
};
struct Results {
  explicit Results(const Problem& p) : o(p.q_size()), lse(p.lse_size()), dq(o), dk(p.kv_size()), dv(dk) {}
  Expected o, lse, dq, dk, dv;
};

Eigen::Map<Matrix> head_of(std::vector<double>& tensor, int head, int rows, int columns) {
  return {tensor.data() + size_t(head) * rows * columns, rows, columns};
}

Results expected(const Problem& p, const HostTensors& in) {
  const int D = p.head_dim;
  const reference::Rope rope(p.rope ? p.rope_rows() : 0, D);
  const auto queries = reference::query_positions(p), keys = reference::key_positions(p);
  const auto rotated = [&](const Matrix& x, const auto& at) { return p.rope ? reference::rotate(x, at, rope) : x; };
  const auto back = [&](const Matrix& x, const auto& at) { return p.rope ? reference::rotate_back(x, at, rope) : x; };
  Results results(p);
  for (int h = 0; h < p.batch * p.heads; h++) {
    const int kv_head = p.kv_head(h);
    const Matrix q = rotated(reference::head(in.q, h, p.seq_q, D), queries);
    const Matrix k = rotated(reference::head(in.k, kv_head, p.seq_k, D), keys);
    const Matrix v = reference::head(in.v, kv_head, p.seq_k, D), d_o = reference::head(in.d_o, h, p.seq_q, D);
    const std::vector<int> visible = reference::visible_keys(p);

    reference::Forward f = reference::forward(q, k, v, p.scale, visible);
    head_of(results.o.whole, h, p.seq_q, D) = f.o;
    head_of(results.lse.whole, h, p.seq_q, 1) = f.lse;
    Matrix dq = Matrix::Zero(p.seq_q, D), dk = Matrix::Zero(p.seq_k, D), dv = dk;
    f.o.setZero();
    for (int i = 0; i < p.seq_q; i++) {
      const int n = visible[i];
      if (n == 0) continue;
      const reference::Forward row =
          reference::forward(q.row(i), k.topRows(n), v.topRows(n), p.scale, std::vector<int>{n});
      const reference::Gradients g =
          reference::backward(q.row(i), k.topRows(n), v.topRows(n), row, d_o.row(i), p.scale);
      f.o.row(i) = row.o;
      f.lse(i) = row.lse(0);
      dq.row(i) = g.dq;
      dk.topRows(n) += g.dk;
      dv.topRows(n) += g.dv;
    }
    head_of(results.o.seen, h, p.seq_q, D) = f.o;
    head_of(results.lse.seen, h, p.seq_q, 1) = f.lse;
    head_of(results.dq.seen, h, p.seq_q, D) = back(dq, queries);
    head_of(results.dk.seen, kv_head, p.seq_k, D) += back(dk, keys);
    head_of(results.dv.seen, kv_head, p.seq_k, D) += dv;

    const reference::Gradients g =
        reference::backward(q, k, v, reference::recomputed(q, k, f.o, f.lse, p.scale, visible), d_o, p.scale);
    head_of(results.dq.whole, h, p.seq_q, D) = back(g.dq, queries);
    head_of(results.dk.whole, kv_head, p.seq_k, D) += back(g.dk, keys);
    head_of(results.dv.whole, kv_head, p.seq_k, D) += g.dv;
  }
  return results;
}

// The first element that is not as expected; `columns` of a row, one of LSE.
std::string first_wrong(const char* tensor, const std::vector<float>& got, const Expected& expected, double tolerance,
                        int rows, int columns) {
  // An LSE of -inf says that the row sees no key.
  const auto is_lost = [&](double x) { return !std::isfinite(x) && !(columns == 1 && x == -INFINITY); };
  for (size_t n = 0; n < got.size(); n++) {
    const double x = got[n], seen = expected.seen[n];
    const bool right = x == seen || std::abs(x - seen) <= tolerance;
    if (is_lost(seen) ? is_lost(x) : right || (is_lost(x) && is_lost(expected.whole[n]))) continue;
    std::ostringstream line;
    line << tensor << "[head " << n / columns / rows << ", i=" << n / columns % rows << ", d=" << n % columns << "] is "
         << x << ", expected " << seen;
    return line.str();
  }
  return "";
}

template <class T>
std::vector<T> download(const harness::GuardedBuffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  buffer.download(values.data());
  return values;
}

std::string first_wrong(const attention::Forward& pass, const Problem& p, const HostTensors& in,
                        const Results& expected, const harness::Verdict& allowed) {
  harness::DeviceTensors device(p, in, pass.workspace_bytes(p), false);
  pass.run(p, device.forward_args(), nullptr);
  check(cudaDeviceSynchronize());
  const std::vector<float> o = harness::from_storage(download<uint16_t>(device.o), p.dtype);
  std::string wrong = first_wrong("o", o, expected.o, allowed.comparisons[0].tolerance, p.seq_q, p.head_dim);
  if (wrong.empty() && pass.writes_lse)
    wrong = first_wrong("lse", download<float>(device.lse), expected.lse, allowed.comparisons[1].tolerance, p.seq_q, 1);
  return wrong;
}

std::string first_wrong(const attention::Backward& pass, const Problem& p, const HostTensors& in,
                        const Results& expected, const harness::Verdict& allowed) {
  harness::DeviceTensors device(p, in, pass.workspace_bytes(p), true);
  const std::vector<float> o(expected.o.seen.begin(), expected.o.seen.end());
  const std::vector<float> lse(expected.lse.seen.begin(), expected.lse.seen.end());
  device.o.upload(harness::to_storage(o, p.dtype).data());
  device.lse.upload(lse.data());
  pass.run(p, device.backward_args(), nullptr);
  check(cudaDeviceSynchronize());
  const struct {
    const char* name;
    const harness::GuardedBuffer& buffer;
    const Expected& expected;
    int rows;
  } gradients[] = {{"dq", device.dq, expected.dq, p.seq_q},
                   {"dk", device.dk, expected.dk, p.seq_k},
                   {"dv", device.dv, expected.dv, p.seq_k}};
  std::string wrong;
  for (size_t n = 0; n < std::size(gradients) && wrong.empty(); n++) {
    const auto& [name, buffer, of_it, rows] = gradients[n];
    wrong = first_wrong(name, harness::from_storage(download<uint16_t>(buffer), p.dtype), of_it,
                        allowed.comparisons[n].tolerance, rows, p.head_dim);
  }
  return wrong;
}

template <class Pass>
std::string wrong_with(const Pass& pass, const Case& c) {
  constexpr bool backward = std::is_same_v<Pass, attention::Backward>;
  if (!attention::unsupported(pass, c.problem).empty()) return "";
  static std::map<std::string, Results> results;  // the same for every pass
  const Problem& p = c.problem;
  const Solved& usual = solved(c, backward);
  const std::vector<float> zero_o(p.q_size()), zero_lse(p.lse_size()), zero_kv(p.kv_size());
  const harness::Verdict allowed = [&] {  // what it says of zeros has the tolerances
    if constexpr (backward)
      return usual.reference.check_backward(zero_o, zero_kv, zero_kv);
    else
      return usual.reference.check_forward(zero_o, zero_lse);
  }();
  for (const float x : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    HostTensors in = usual.inputs;
    put(p, x, in);
    const std::string key =
        name(c) + " with " + std::to_string(x) + (p.eight_bits ? " in eight bits " + std::to_string(p.eight_bits) : "");
    if (!results.contains(key))
      results.emplace(key, expected(in_eight_bits(p), p.eight_bits ? in_eight_bits(p, in) : in));
    const std::string wrong = first_wrong(pass, p, in, results.at(key), allowed);
    if (!wrong.empty()) return "with " + std::to_string(x) + ", " + wrong;
  }
  return "";
}

}  // namespace

// With the mask some rows of a tile see the key and others do not.
std::vector<Case> cases_for_non_finite() {
  return {make({2, 4, 2, 70, 100, 64}, DType::fp16, Mask::causal).for_("groups of two, over a batch; D = 64"),
          make({1, 4, 4, 100, 70, 128}, DType::fp16, Mask::none).for_("no mask: all rows see the key; D = 128"),
          make({1, 4, 4, 100, 90, 128}, DType::bf16, Mask::causal).for_("rows that see no key; D = 128"),
          make({1, 4, 4, 100, 210, 64}, DType::bf16, Mask::causal)
              .for_("a key of the second tile, which exp2_polynomial() gets in some rows"),
          make({1, 4, 4, 70, 210, 256}, DType::fp16, Mask::causal).for_("a key of the second tile, D = 256")};
}

std::string wrong_non_finite(const attention::Forward& pass, const Case& c) { return wrong_with(pass, c); }
std::string wrong_non_finite(const attention::Backward& pass, const Case& c) { return wrong_with(pass, c); }

}  // namespace chapter_suite
