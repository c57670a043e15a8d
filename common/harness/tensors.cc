#include "harness/tensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <random>

#include "device/fp8.h"
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
    case InputKind::long_sum:
      return "long_sum";
    case InputKind::apart:
      return "apart";
    case InputKind::sink:
      return "sink";
  }
  return "?";
}

namespace {

// The lengths of sequence b: up to `longest`, evenly in their logarithms.
int length(int longest, int b, double step) {
  const double place = b * step - std::floor(b * step);  // in [0, 1), and 0 for the first, which is the longest
  return std::max(1, int(std::lround(std::pow(double(longest), 1 - place))));
}

}  // namespace

std::vector<Problem> sequences(const Problem& p) {
  if (!p.packed) return {p};
  std::vector<Problem> all(p.batch, p);
  for (int b = 0; b < p.batch; b++) {
    constexpr double golden = 0.6180339887, plastic = 0.7548776662;  // numbers of which no few multiples meet
    Problem& one = all[b];
    one.packed = false;
    one.batch = 1;
    one.seq_q = b % 8 == 1 ? 1 : b % 8 == 3 ? 0 : length(p.seq_q, b, golden);
    one.seq_k = b % 8 == 5 ? 0 : length(p.seq_k, b, p.seq_k == p.seq_q ? golden : plastic);
  }
  return all;
}

Problem packed(Problem p) {
  p.packed = true;
  p.total_q = 3, p.total_k = 5;  // of no sequence
  for (const Problem& one : sequences(p)) p.total_q += one.seq_q, p.total_k += one.seq_k;
  return p;
}

double flops_of_all(const Problem& p, bool backward) {
  double sum = 0;
  for (const Problem& one : sequences(p)) sum += attention::flops(one, backward);
  return sum;
}

namespace {

// Slopes as in Press et al., "Train Short, Test Long" (2022), for 8 heads, and a little less in each batch. Sinks from
// -2 to 4.
void add_slopes_and_sinks(HostTensors& t, const Problem& p) {
  for (size_t h = 0; h < p.alibi_size(); h++)
    t.alibi.push_back(std::exp2(-float(1 + h % p.heads % 8)) * (1 - 0.125f * float(h / p.heads % 4)));
  for (size_t h = 0; h < p.sink_size(); h++) t.sink.push_back(float(h % 5) * 1.5f - 2);
}

// Those of each sequence, one behind the other.
HostTensors packed_inputs(const Problem& p, InputKind kind, uint64_t seed) {
  HostTensors all;
  for (Problem one : sequences(p)) {
    one.alibi = one.sink = false;
    const HostTensors t = make_inputs(one, kind, seed++);
    for (const auto tensor : {&HostTensors::q, &HostTensors::k, &HostTensors::v, &HostTensors::d_o})
      (all.*tensor).insert((all.*tensor).end(), (t.*tensor).begin(), (t.*tensor).end());
  }
  add_slopes_and_sinks(all, p);
  return all;
}

}  // namespace

HostTensors make_inputs(const Problem& p, InputKind kind, uint64_t seed) {
  if (p.packed) return packed_inputs(p, kind, seed);
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
    case InputKind::long_sum:
      std::fill(t.k.begin(), t.k.end(), 0.0f);
      for (size_t i = 0; i < t.v.size(); i++) t.v[i] = 1 + 0.125f * float(i / 3 * 5 % 7);
      break;
    case InputKind::apart:
      for (size_t i = 0; i < t.v.size(); i++) {
        const int tile = int(i / p.v_dim() % p.seq_k) / attention::fp8_tile;
        t.v[i] *= tile == 0 ? 1e-30f : tile == 1 ? 1e30f : 0;
      }
      break;
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
  add_slopes_and_sinks(t, p);
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

// In fp32, as kernels do: to the bit.
std::vector<float> rounded_to_eight_bits(const std::vector<float>& tensor) {
  float largest = smallest_divisor;
  for (const float x : tensor)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  const float scale = largest / largest_e4m3, inverse = largest_e4m3 / largest;
  return converted<float>(tensor, [=](float x) {
    return std::isfinite(x) ? to_float(from_float<__nv_fp8_e4m3>(x * inverse)) * scale : NAN;
  });
}

// With a scale for each tile of rows of a head; times `size`.
std::vector<float> in_tiles(std::vector<float> x, int rows, int columns, float size) {
  const size_t head = size_t(rows) * columns, tile = size_t(attention::fp8_tile) * columns;
  for (size_t begin = 0; begin < x.size();) {
    const size_t end = std::min(begin + tile, begin / head * head + head);
    float largest = 0;
    for (size_t i = begin; i < end; i++)
      if (std::isfinite(x[i])) largest = std::max(largest, std::abs(x[i]));
    const float scale = tile_scale(largest);
    for (size_t i = begin; i < end; i++)
      x[i] = std::isfinite(x[i]) ? to_float(from_float<__nv_fp8_e4m3>(x[i] / scale)) * scale * size : NAN;
    begin = end;
  }
  return x;
}

// Rows with as many zeros behind them as make D columns, times a Hadamard matrix of signs: sqrt(D) times an orthogonal
// one.
template <int D>
std::vector<float> rotated_to(const std::vector<float>& x, int columns) {
  std::vector<float> rotated(x.size() / columns * D);
  for (size_t row = 0; row < x.size() / columns; row++) {
    float* const to = rotated.data() + row * D;
    for (int c = 0; c < columns; c++)
      to[c] = x[row * columns + c] * (hadamard_signs(c / 32) >> c % 32 & 1 ? -1.f : 1.f);
    for (int step = 0; step < hadamard_steps<D>; step++)
      for (int c = 0, distance = hadamard_distance<D>(step); c < D; c++)
        if (!(c & distance)) hadamard_step(to[c], to[c + distance]);
  }
  return rotated;
}
std::vector<float> rotated_rows(const std::vector<float>& x, int columns, int D) {
  return D == 64 ? rotated_to<64>(x, columns) : D == 128 ? rotated_to<128>(x, columns) : rotated_to<256>(x, columns);
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

attention::Problem in_eight_bits(const Problem& p) {
  Problem rounded = p;
  if (p.eight_bits == attention::rotated_tile) {
    rounded.head_dim = p.head_dim <= 64 ? 64 : p.head_dim <= 128 ? 128 : 256;
    rounded.head_dim_v = p.v_dim();
  }
  return rounded;
}

HostTensors in_eight_bits(const Problem& p, const HostTensors& t) {
  if (p.eight_bits <= attention::lagging_max)
    return {rounded_to_eight_bits(t.q), rounded_to_eight_bits(t.k), rounded_to_eight_bits(t.v), t.d_o, t.alibi, t.sink};
  const bool rotate = p.eight_bits == attention::rotated_tile;
  const int D = in_eight_bits(p).head_dim;
  const auto rotated = [&](const std::vector<float>& x) { return rotate ? rotated_rows(x, p.head_dim, D) : x; };
  const float size = rotate ? 1.f / float(D) : 1.f;  // of the rotated rows' products
  return {in_tiles(rotated(t.q), p.seq_q, D, size),
          in_tiles(rotated(t.k), p.seq_k, D, 1),
          in_tiles(t.v, p.seq_k, p.v_dim(), 1),
          t.d_o,
          t.alibi,
          t.sink};
}

std::vector<uint16_t> to_storage(const std::vector<float>& values, DType dtype) {
  return dtype == DType::fp16 ? to_storage_as<__half>(values) : to_storage_as<__nv_bfloat16>(values);
}

std::vector<float> from_storage(const std::vector<uint16_t>& bits, DType dtype) {
  return dtype == DType::fp16 ? from_storage_as<__half>(bits) : from_storage_as<__nv_bfloat16>(bits);
}

attention::Strides strides(const Problem& p, int heads, int rows, int D) {
  if (!p.views) return attention::contiguous(p, heads, rows, D);
  const int gap = p.unaligned ? 1 : 8;  // elements, 2 or 16 bytes
  const int64_t head = D + gap, row = heads * head + gap;
  return {rows * row + 2 * gap, head, row};
}

GuardedBuffer::GuardedBuffer(size_t bytes, size_t guard, Fill fill)
    : bytes_(bytes), guard_(guard), row_bytes_(bytes), extent_(bytes), buffer_(bytes == 0 ? 0 : bytes + 2 * guard) {
  if (fill == Fill::poison) buffer_.fill(poison);
}

namespace {

// Where the contiguous pieces of a tensor begin, in bytes, and where it ends. One piece is all that there is to say of
// most tensors: then `begin` is empty.
struct Pieces {
  std::vector<size_t> begin;
  size_t bytes, end;  // of each piece; of the tensor, rows of no sequence included
};

Pieces pieces(const Problem& p, GuardedBuffer::Of of, int D) {
  const bool lse = of == GuardedBuffer::Of::lse, keys = of == GuardedBuffer::Of::keys;
  const size_t element = lse ? sizeof(float) : sizeof(uint16_t);
  const int heads = keys ? p.kv_heads : p.heads, rows = keys ? p.seq_k : p.seq_q, total = keys ? p.total_k : p.total_q;
  if (!p.packed && (lse || !p.views)) return {{}, 0, size_t(p.batch) * heads * rows * D * element};
  const attention::Strides strides = lse ? attention::Strides{0, total, 1} : harness::strides(p, heads, rows, D);
  const auto at = [&](int64_t b, int64_t h, int64_t i) {
    return size_t(b * strides.batch + h * strides.head + i * strides.row) * element;
  };
  Pieces all = {{}, D * element, at(p.packed ? 0 : p.batch - 1, heads - 1, (p.packed ? total : rows) - 1)};
  all.end += all.bytes;
  int first = 0, b = 0;
  for (const Problem& one : sequences(p))
    for (int batch = 0; batch < one.batch; batch++, b++) {
      const int length = keys ? one.seq_k : one.seq_q;
      for (int h = 0; h < heads; h++)
        for (int i = 0; i < length; i++) all.begin.push_back(at(p.packed ? 0 : b, h, first + i));
      if (p.packed) first += length;
    }
  return all;
}

// [B + 1]
std::vector<int> cu_seqlens(const Problem& p, int Problem::*length) {
  std::vector<int> begin(p.packed ? 1 : 0);
  for (const Problem& one : sequences(p))
    if (p.packed) begin.push_back(begin.back() + one.*length);
  return begin;
}

}  // namespace

GuardedBuffer::GuardedBuffer(const Problem& p, Of rows, int D, size_t guard, bool exists) : guard_(guard) {
  Pieces all = pieces(p, rows, D);
  row_bytes_ = all.bytes;
  row_begin_ = std::move(all.begin);
  extent_ = exists ? all.end : 0;
  bytes_ = !exists ? 0 : all.bytes == 0 ? all.end : row_begin_.size() * all.bytes;
  if (!exists) row_begin_.clear();
  if (extent_ > 0) buffer_ = DeviceBuffer(extent_ + 2 * guard);
  if (extent_ > 0) buffer_.fill(poison);
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
    : q(p, GuardedBuffer::Of::queries, p.head_dim, guard),
      k(p, GuardedBuffer::Of::keys, p.head_dim, guard),
      v(p, GuardedBuffer::Of::keys, p.v_dim(), guard),
      o(p, GuardedBuffer::Of::queries, p.v_dim(), guard),
      lse(p, GuardedBuffer::Of::lse, 1, guard),
      workspace(workspace_bytes, guard, guard == 0 ? GuardedBuffer::Fill::nothing : GuardedBuffer::Fill::poison),
      rope_cos(p.rope_size() * sizeof(float), guard),
      rope_sin(p.rope_size() * sizeof(float), guard),
      d_o(p, GuardedBuffer::Of::queries, p.v_dim(), guard, backward),
      dq(p, GuardedBuffer::Of::queries, p.head_dim, guard, backward),
      dk(p, GuardedBuffer::Of::keys, p.head_dim, guard, backward),
      dv(p, GuardedBuffer::Of::keys, p.v_dim(), guard, backward),
      alibi(p.alibi_size() * sizeof(float), guard),
      sink(p.sink_size() * sizeof(float), guard),
      d_sink(backward ? p.sink_size() * sizeof(float) : 0, guard),
      cu_seqlens_q(cu_seqlens(p, &Problem::seq_q).size() * sizeof(int), guard),
      cu_seqlens_k(cu_seqlens(p, &Problem::seq_k).size() * sizeof(int), guard),
      blocks(attention::block_lists(p)),
      block_begin(blocks.begin.size() * sizeof(int), guard),
      block_tiles(blocks.tiles.size() * sizeof(int), guard),
      block_bits(blocks.bits.size() * sizeof(uint32_t), guard),
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
  cu_seqlens_q.upload(cu_seqlens(p, &Problem::seq_q).data());
  cu_seqlens_k.upload(cu_seqlens(p, &Problem::seq_k).data());
  block_begin.upload(blocks.begin.data());
  block_tiles.upload(blocks.tiles.data());
  block_bits.upload(blocks.bits.data());
}

attention::BlockMask DeviceTensors::block_mask() const {
  return {blocks.batch,
          blocks.heads,
          blocks.listed(),
          blocks.cuts(),
          static_cast<const int*>(block_begin.data()),
          static_cast<const int*>(block_tiles.data()),
          static_cast<const uint32_t*>(block_bits.data())};
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
          static_cast<const float*>(sink.data()),
          static_cast<const int*>(cu_seqlens_q.data()),
          static_cast<const int*>(cu_seqlens_k.data()),
          block_mask()};
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
          static_cast<float*>(d_sink.data()),
          static_cast<const int*>(cu_seqlens_q.data()),
          static_cast<const int*>(cu_seqlens_k.data()),
          block_mask()};
}

attention::RopeTables DeviceTensors::rope_tables() const {
  return {static_cast<const float*>(rope_cos.data()), static_cast<const float*>(rope_sin.data())};
}

std::string DeviceTensors::broken_guard() const {
  const struct {
    const char* name;
    const GuardedBuffer& buffer;
  } buffers[] = {{"q", q},
                 {"k", k},
                 {"v", v},
                 {"o", o},
                 {"lse", lse},
                 {"workspace", workspace},
                 {"d_o", d_o},
                 {"dq", dq},
                 {"dk", dk},
                 {"dv", dv},
                 {"rope_cos", rope_cos},
                 {"rope_sin", rope_sin},
                 {"alibi", alibi},
                 {"sink", sink},
                 {"d_sink", d_sink},
                 {"cu_seqlens_q", cu_seqlens_q},
                 {"cu_seqlens_k", cu_seqlens_k}};
  for (const auto& [name, buffer] : buffers)
    if (!buffer.guards_intact()) return std::string("memory next to ") + name + " was written to";
  return "";
}

size_t device_bytes(const Problem& p, size_t workspace_bytes, bool backward) {
  size_t tensors = 0;  // Q and K, O and V
  for (const int D : {p.head_dim, p.v_dim()})
    tensors += pieces(p, GuardedBuffer::Of::queries, D).end + pieces(p, GuardedBuffer::Of::keys, D).end;
  const size_t numbers = p.lse_size() + 2 * p.rope_size() + p.alibi_size() + (backward ? 2 : 1) * p.sink_size();
  return (backward ? 2 : 1) * tensors + numbers * sizeof(float) + workspace_bytes;
}

}  // namespace harness
