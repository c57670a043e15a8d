#include "harness/tensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <random>

#include "device/numeric.h"
#include "harness/parallel.h"
#include "reference/attention.h"

namespace harness {
namespace {

using attention::DType;
using attention::Problem;

constexpr unsigned char poison = 0xff;  // NaN in fp16, bf16 and fp32

float rounded(float x, DType dtype) {
  return dtype == DType::fp16 ? to_float(from_float<__half>(x)) : to_float(from_float<__nv_bfloat16>(x));
}

// Standard normal numbers. The standard library's distribution differs between implementations; this one does not.
// Box and Muller, "A Note on the Generation of Random Normal Deviates" (1958).
class Normal {
 public:
  explicit Normal(uint64_t seed) : bits_(seed) {}

  float operator()() {
    const double u = (double(bits_() >> 11) + 1) * 0x1p-53;  // in (0, 1]
    const double angle = 2 * M_PI * double(bits_() >> 11) * 0x1p-53;
    return float(std::sqrt(-2 * std::log(u)) * std::cos(angle));
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace

const char* name(InputKind kind) {
  switch (kind) {
    case InputKind::spread:
      return "spread";
    case InputKind::growing:
      return "growing";
    case InputKind::spike_first:
      return "spike_first";
    case InputKind::spike_last:
      return "spike_last";
    case InputKind::spike_tiles:
      return "spike_tiles";
    case InputKind::large:
      return "large";
    case InputKind::loud:
      return "loud";
    case InputKind::overflow:
      return "overflow";
    case InputKind::sink:
      return "sink";
  }
  return "?";
}

HostTensors make_inputs(const Problem& p, InputKind kind, uint64_t seed) {
  HostTensors t = {std::vector<float>(p.q_size()), std::vector<float>(p.kv_size()), std::vector<float>(p.v_size()),
                   std::vector<float>(p.o_size())};
  std::vector<float>* const tensors[] = {&t.q, &t.k, &t.v, &t.d_o};
  in_parallel(std::size(tensors), [&](size_t n) {
    Normal normal(seed * std::size(tensors) + n);  // one for each tensor, whatever the shapes of the others
    for (float& x : *tensors[n]) x = normal();
  });

  // A query is a row of D normal numbers, and so is a key: their product times 1/sqrt(D) is normal with deviation 1.
  // Most kinds also give every query a component along one direction, that of ones, and every key a
  // multiple of it: the logit of key j is then about `logit(i, j)`, plus the noise.
  const int D = p.head_dim;
  const auto add_direction = [&](auto&& of_query, auto&& of_key) {
    for (size_t row = 0; row < t.q.size() / D; row++)
      for (int d = 0; d < D; d++) t.q[row * D + d] = 0.5f * t.q[row * D + d] + of_query(int(row % p.seq_q));
    const float per_element = float(1 / std::sqrt(double(D)));  // so that D of them times 1/sqrt(D) give the logit
    for (size_t row = 0; row < t.k.size() / D; row++)
      for (int d = 0; d < D; d++) t.k[row * D + d] = 0.5f * t.k[row * D + d] + per_element * of_key(int(row % p.seq_k));
  };
  const auto one = [](int) { return 1.0f; };
  switch (kind) {
    case InputKind::spread:
      for (float& x : t.q) x *= 2;
      break;
    case InputKind::growing:
      add_direction(one, [&](int j) { return 16.0f * float(j) / float(p.seq_k); });
      break;
    case InputKind::spike_first:
      add_direction(one, [](int j) { return j == 0 ? 12.0f : 0.0f; });
      break;
    case InputKind::spike_last:
      add_direction(one, [&](int j) { return j == p.seq_k - 1 ? 12.0f : 0.0f; });
      break;
    case InputKind::spike_tiles:
      add_direction([](int i) { return i % 2 == 0 ? 1.0f : -1.0f; },
                    [](int j) { return j % 32 == 0    ? 10.0f
                                       : j % 32 == 31 ? -10.0f
                                                      : 0.0f; });
      break;
    case InputKind::large:
      add_direction([](int i) { return i % 2 == 0 ? 1.0f : -1.0f; }, [](int j) { return j % 3 == 0 ? 100.0f : 95.0f; });
      break;
    case InputKind::loud:
      for (float& x : t.q) x *= 5;
      for (float& x : t.k) x *= 3;
      for (float& x : t.v) x *= 3;
      break;
    case InputKind::overflow: {
      // Along the pair of elements that RoPE turns least. V is far from 0, since nothing would be if no key counted.
      const int first = D / 2 - 1, second = D - 1;
      const float far = 1e20f, near = 120 / (2 * far * p.scale);
      for (size_t i = 0; i < t.q.size(); i += D) t.q[i + first] = t.q[i + second] = far;
      for (size_t j = 0; j < t.k.size(); j += D)
        t.k[j + first] = t.k[j + second] = int(j / D % p.seq_k) < p.seq_k / 2 ? -far : -near;
      for (float& x : t.v) x += 2;
      break;
    }
    case InputKind::sink: {
      // The keys differ along one pair of elements, the one that RoPE turns least. Key 0 makes up for what is still
      // lost from its position to the last.
      const int first = D / 2 - 1, second = D - 1;
      const double angle = p.rope ? (p.seq_k - 1) * std::pow(10000.0, -2.0 * first / D) : 0;
      const float query = 8, logit = 18 * float(M_LN2);
      const float sink = logit / p.scale / (2 * query * float(std::cos(angle)));
      for (float& x : t.k) x *= 0.25f;
      for (float& x : t.v) x += 1;
      for (size_t i = 0; i < t.q.size(); i += D) t.q[i + first] = t.q[i + second] = query;
      for (size_t j = 0; j < t.k.size(); j += D) t.k[j + first] = t.k[j + second] = j / D % p.seq_k == 0 ? sink : 0;
      break;
    }
  }
  in_parallel(std::size(tensors), [&](size_t n) {
    for (float& x : *tensors[n]) x = rounded(x, p.dtype);
  });
  // Slopes as in Press et al., "Train Short, Test Long" (2022), for 8 heads, and a little less in each batch.
  for (size_t h = 0; h < p.alibi_size(); h++)
    t.alibi.push_back(std::exp2(-float(1 + h % p.heads % 8)) * (1 - 0.125f * float(h / p.heads % 4)));
  for (size_t h = 0; h < p.sink_size(); h++) t.sink.push_back(float(h % 5) * 1.5f - 2);  // from -2 to 4
  return t;
}

namespace {

// to[i] = convert(from[i]), in pieces on all cores: the host's conversions to and from fp16 are slow.
template <class To, class From, class Convert>
std::vector<To> converted(const std::vector<From>& from, Convert&& convert) {
  constexpr size_t piece = 1 << 20;
  std::vector<To> to(from.size());
  const auto convert_piece = [&](size_t begin) {
    const size_t end = std::min(from.size(), begin + piece);
    for (size_t i = begin; i < end; i++) to[i] = convert(from[i]);
  };
  if (from.size() <= piece)
    convert_piece(0);  // not worth a thread
  else
    in_parallel((from.size() + piece - 1) / piece, [&](size_t n) { convert_piece(n * piece); });
  return to;
}

template <class T>
std::vector<uint16_t> to_storage_as(const std::vector<float>& values) {
  return converted<uint16_t>(values, [](float x) { return std::bit_cast<uint16_t>(from_float<T>(x)); });
}

template <class T>
std::vector<float> from_storage_as(const std::vector<uint16_t>& bits) {
  return converted<float>(bits, [](uint16_t x) { return to_float(std::bit_cast<T>(x)); });
}

}  // namespace

std::vector<uint16_t> to_storage(const std::vector<float>& values, DType dtype) {
  return dtype == DType::fp16 ? to_storage_as<__half>(values) : to_storage_as<__nv_bfloat16>(values);
}

std::vector<float> from_storage(const std::vector<uint16_t>& bits, DType dtype) {
  return dtype == DType::fp16 ? from_storage_as<__half>(bits) : from_storage_as<__nv_bfloat16>(bits);
}

attention::Strides strides(const Problem& p, int heads, int rows, int D) {
  if (!p.views) return attention::contiguous(heads, rows, D);
  constexpr int gap = 8;  // elements: 16 bytes
  const int64_t head = D + gap, row = heads * head + gap;
  return {rows * row + 2 * gap, head, row};
}

GuardedBuffer::GuardedBuffer(size_t bytes, size_t guard, Fill fill)
    : bytes_(bytes), guard_(guard), row_bytes_(bytes), extent_(bytes), buffer_(bytes == 0 ? 0 : bytes + 2 * guard) {
  if (fill == Fill::poison) buffer_.fill(poison);
}

namespace {

// From the first element of a tensor to behind its last one.
size_t extent(const Problem& p, int heads, int rows, int D) {
  const attention::Strides of = strides(p, heads, rows, D);
  const int64_t last = (p.batch - 1) * of.batch + (heads - 1) * of.head + (rows - 1) * of.row;
  return heads == 0 ? 0 : size_t(last + D) * sizeof(uint16_t);
}

}  // namespace

GuardedBuffer::GuardedBuffer(const Problem& p, int heads, int rows, int D, size_t guard)
    : bytes_(size_t(p.batch) * heads * rows * D * sizeof(uint16_t)),
      guard_(guard),
      row_bytes_(p.views ? D * sizeof(uint16_t) : bytes_),
      extent_(extent(p, heads, rows, D)),
      buffer_(extent_ == 0 ? 0 : extent_ + 2 * guard) {
  buffer_.fill(poison);
  if (!p.views) return;
  const attention::Strides of = strides(p, heads, rows, D);
  for (int b = 0; b < p.batch; b++)
    for (int h = 0; h < heads; h++)
      for (int i = 0; i < rows; i++)
        row_begin_.push_back(size_t(b * of.batch + h * of.head + i * of.row) * sizeof(uint16_t));
}

void GuardedBuffer::upload(const void* from) {
  if (bytes_ == 0) return;
  if (row_begin_.empty()) return check(cudaMemcpy(data(), from, bytes_, cudaMemcpyHostToDevice));
  std::vector<char> all(extent_, char(poison));
  for (size_t row = 0; row < row_begin_.size(); row++)
    std::copy_n(static_cast<const char*>(from) + row * row_bytes_, row_bytes_, all.begin() + long(row_begin_[row]));
  check(cudaMemcpy(data(), all.data(), extent_, cudaMemcpyHostToDevice));
}

void GuardedBuffer::download(void* to) const {
  if (row_begin_.empty()) return check(cudaMemcpy(to, data(), bytes_, cudaMemcpyDeviceToHost));
  std::vector<char> all(extent_);
  check(cudaMemcpy(all.data(), data(), extent_, cudaMemcpyDeviceToHost));
  for (size_t row = 0; row < row_begin_.size(); row++)
    std::copy_n(all.begin() + long(row_begin_[row]), row_bytes_, static_cast<char*>(to) + row * row_bytes_);
}

bool GuardedBuffer::guards_intact() const {
  if (!row_begin_.empty()) {
    std::vector<char> all(extent_);
    check(cudaMemcpy(all.data(), data(), extent_, cudaMemcpyDeviceToHost));
    for (const size_t begin : row_begin_) std::fill_n(all.begin() + long(begin), row_bytes_, char(poison));
    if (std::any_of(all.begin(), all.end(), [](char byte) { return byte != char(poison); })) return false;
  }
  if (bytes_ == 0 || guard_ == 0) return true;
  const char* begin = static_cast<const char*>(buffer_.data());
  const std::vector<unsigned char> expected(guard_, poison);
  std::vector<unsigned char> got(guard_);
  for (const char* guard : {begin, begin + guard_ + extent_}) {
    check(cudaMemcpy(got.data(), guard, guard_, cudaMemcpyDeviceToHost));
    if (got != expected) return false;
  }
  return true;
}

DeviceTensors::DeviceTensors(const Problem& p, const HostTensors& in, size_t workspace_bytes, bool backward,
                             size_t guard)
    : q(p, p.heads, p.seq_q, p.head_dim, guard),
      k(p, p.kv_heads, p.seq_k, p.head_dim, guard),
      v(p, p.kv_heads, p.seq_k, p.v_dim(), guard),
      o(p, p.heads, p.seq_q, p.v_dim(), guard),
      lse(p.lse_size() * sizeof(float), guard),
      workspace(workspace_bytes, guard, guard == 0 ? GuardedBuffer::Fill::nothing : GuardedBuffer::Fill::poison),
      rope_cos(p.rope_size() * sizeof(float), guard),
      rope_sin(p.rope_size() * sizeof(float), guard),
      d_o(p, backward ? p.heads : 0, p.seq_q, p.v_dim(), guard),
      dq(p, backward ? p.heads : 0, p.seq_q, p.head_dim, guard),
      dk(p, backward ? p.kv_heads : 0, p.seq_k, p.head_dim, guard),
      dv(p, backward ? p.kv_heads : 0, p.seq_k, p.v_dim(), guard),
      alibi(p.alibi_size() * sizeof(float), guard),
      sink(p.sink_size() * sizeof(float), guard),
      d_sink(backward ? p.sink_size() * sizeof(float) : 0, guard),
      of_q_(strides(p, p.heads, p.seq_q, p.head_dim)),
      of_k_(strides(p, p.kv_heads, p.seq_k, p.head_dim)),
      of_v_(strides(p, p.kv_heads, p.seq_k, p.v_dim())),
      of_o_(strides(p, p.heads, p.seq_q, p.v_dim())) {
  q.upload(to_storage(in.q, p.dtype).data());
  k.upload(to_storage(in.k, p.dtype).data());
  v.upload(to_storage(in.v, p.dtype).data());
  if (backward) d_o.upload(to_storage(in.d_o, p.dtype).data());
  if (p.rope) upload_rope(p);
  alibi.upload(in.alibi.data());
  sink.upload(in.sink.data());
}

void DeviceTensors::upload_rope(const Problem& p, int first) {
  const reference::Rope rope(first + p.rope_rows(), p.head_dim);
  using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  rope_cos.upload(FloatMatrix(rope.cos.bottomRows(p.rope_rows()).cast<float>()).data());
  rope_sin.upload(FloatMatrix(rope.sin.bottomRows(p.rope_rows()).cast<float>()).data());
}

attention::ForwardArgs DeviceTensors::forward_args() const {
  return {q.data(),
          k.data(),
          v.data(),
          o.data(),
          static_cast<float*>(lse.data()),
          workspace.data(),
          rope_tables(),
          of_q_,
          of_k_,
          of_v_,
          of_o_,
          static_cast<const float*>(alibi.data()),
          static_cast<const float*>(sink.data())};
}

attention::BackwardArgs DeviceTensors::backward_args() const {
  return {q.data(),
          k.data(),
          v.data(),
          o.data(),
          static_cast<const float*>(lse.data()),
          d_o.data(),
          dq.data(),
          dk.data(),
          dv.data(),
          workspace.data(),
          rope_tables(),
          of_q_,
          of_k_,
          of_v_,
          of_o_,
          of_o_,
          of_q_,
          of_k_,
          of_v_,
          static_cast<const float*>(alibi.data()),
          static_cast<const float*>(sink.data()),
          static_cast<float*>(d_sink.data())};
}

attention::RopeTables DeviceTensors::rope_tables() const {
  return {static_cast<const float*>(rope_cos.data()), static_cast<const float*>(rope_sin.data())};
}

std::string DeviceTensors::broken_guard() const {
  const struct {
    const char* name;
    const GuardedBuffer& buffer;
  } buffers[] = {
      {"q", q},         {"k", k},       {"v", v},          {"o", o},   {"lse", lse},           {"workspace", workspace},
      {"d_o", d_o},     {"dq", dq},     {"dk", dk},        {"dv", dv}, {"rope_cos", rope_cos}, {"rope_sin", rope_sin},
      {"alibi", alibi}, {"sink", sink}, {"d_sink", d_sink}};
  for (const auto& [name, buffer] : buffers)
    if (!buffer.guards_intact()) return std::string("memory next to ") + name + " was written to";
  return "";
}

size_t device_bytes(const Problem& p, size_t workspace_bytes, bool backward) {
  size_t tensors = 0;  // Q and K, O and V
  for (const int D : {p.head_dim, p.v_dim()})
    tensors += extent(p, p.heads, p.seq_q, D) + extent(p, p.kv_heads, p.seq_k, D);
  const size_t numbers = p.lse_size() + 2 * p.rope_size() + p.alibi_size() + (backward ? 2 : 1) * p.sink_size();
  return (backward ? 2 : 1) * tensors + numbers * sizeof(float) + workspace_bytes;
}

}  // namespace harness
