// Attention with extras, forward and backward, as plain as can be, with a switch for every mistake: a thread owns a row
// of O, of dQ, or of dK and dV.
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attention/block_mask.h"
#include "device/numeric.h"
#include "tests/mutants/mutants.h"

namespace mutants {

using attention::BackwardArgs;
using attention::ForwardArgs;
using attention::Problem;
using attention::Strides;

constexpr int threads = 64;
constexpr int max_head_dim = 192;

template <class T>
struct Tensor {
  T* data;
  Strides strides;

  __device__ T* row(int head, int heads, int i) const {
    return data + head / heads * strides.batch + head % heads * strides.head + i * strides.row;
  }
};

template <class T>
struct Inputs {
  Tensor<const T> q, k, v, o, d_o;
  const float* lse;
  const float* alibi;
  const float* sink;
  const int* begin_q;  // cu_seqlens
  const int* begin_k;
  int lse_rows;  // of a head
  attention::BlockMask blocks;
  bool lists_are_wrong;
};

// Whether query i sees key j, by the block mask, if there is one: from the lists of rows or, `by_key`, of columns.
__device__ bool sees(ExtraMutation mutation, const Problem& p, const attention::BlockMask& blocks, int head, int i,
                     int j, bool by_key = false) {
  if (p.blocks == attention::BlockPattern::none) return true;
  constexpr int tile = attention::BlockMask::tile;
  const int rows = (p.seq_q + tile - 1) / tile, columns = (p.seq_k + tile - 1) / tile;
  int mask = (blocks.batch > 1 ? head / p.heads : 0) * blocks.heads + (blocks.heads > 1 ? head % p.heads : 0);
  if (mutation == ExtraMutation::mask_of_one_head) mask = 0;
  int list = i / tile, other = j / tile, a = i % tile, b = j % tile;
  if (by_key) list = rows + 1 + j / tile, other = i / tile, a = j % tile, b = i % tile;
  if (by_key && mutation == ExtraMutation::rows_for_columns) list = min(j / tile, rows - 1), by_key = false;
  const int* begin = blocks.begin + mask * (rows + columns + 2) + list;
  const int* tiles = blocks.tiles + int64_t(by_key) * blocks.listed * 2;
  const uint32_t* bits = blocks.bits + int64_t(by_key) * blocks.cuts * tile * (tile / 32);
  if (by_key && mutation == ExtraMutation::bits_of_queries_for_keys) bits = blocks.bits;
  const int end = begin[1] - (mutation == ExtraMutation::last_tile_of_a_list);
  for (int t = begin[0]; t < end; ++t) {
    const int cut = tiles[2 * t + 1];
    if (tiles[2 * t] != other) continue;
    if (cut < 0 || mutation == ExtraMutation::cut_tile_as_whole) return true;
    const int row = mutation == ExtraMutation::transposed_bits ? b : a, column = row == b && a != b ? a : b;
    return bits[(int64_t(cut) * tile + row) * (tile / 32) + column / 32] >> column % 32 & 1;
  }
  return false;
}

// The packed sequence that a position of the queries or of the keys is in: what is left of the problem and the inputs
// is that sequence's, and `begin` is its first position. False if it is in none.
template <class T>
__device__ bool enter(ExtraMutation mutation, Problem& p, Inputs<T>& in, const int* own, int position, int& begin) {
  int b = 0;
  while (b < p.batch && position >= own[b + 1]) ++b;
  if (b == p.batch) return false;
  const int q = in.begin_q[b], k = mutation == ExtraMutation::keys_where_queries_begin ? q : in.begin_k[b];
  begin = own[b];
  for (Tensor<const T>* of_queries : {&in.q, &in.o, &in.d_o}) of_queries->data += q * of_queries->strides.row;
  for (Tensor<const T>* of_keys : {&in.k, &in.v}) of_keys->data += k * of_keys->strides.row;
  in.lse += q;
  if (p.alibi && mutation != ExtraMutation::slopes_of_one_sequence) in.alibi += b * p.heads;
  p.seq_q = in.begin_q[b + 1] - q;
  p.seq_k = in.begin_k[b + 1] - in.begin_k[b];
  return true;
}

template <class T>
__device__ bool lengths_are_wrong(const Problem& p, const Inputs<T>& in) {
  if (!p.packed) return in.lists_are_wrong;
  bool wrong = in.begin_q[0] != 0 || in.begin_k[0] != 0;
  wrong = wrong || in.begin_q[p.batch] > p.total_q || in.begin_k[p.batch] > p.total_k;
  for (int b = 0; b < p.batch; ++b)
    wrong = wrong || in.begin_q[b + 1] < in.begin_q[b] || in.begin_k[b + 1] < in.begin_k[b];
  return wrong;
}

template <class T>
__device__ void fill(T* row, int n, float value) {
  for (int d = 0; d < n; ++d) row[d] = from_float<T>(value);
}
template <class T>
__device__ void fill_with_nan(T* row, int n) {  // as the tests look for it
  for (int d = 0; d < n; ++d) reinterpret_cast<uint16_t*>(row)[d] = 0xffff;
}

template <class T>
__device__ float dot(const T* a, const T* b, int n) {
  float sum = 0;
  for (int d = 0; d < n; ++d) sum += to_float(a[d]) * to_float(b[d]);
  return sum;
}

// The keys that query i sees.
__device__ Problem::Span keys_of(ExtraMutation mutation, Problem p, int i) {
  if (mutation == ExtraMutation::window_top_left && p.window_left >= 0) i -= p.seq_k - p.seq_q;
  Problem::Span keys = p.keys_of(i);
  if (mutation == ExtraMutation::window_begins_late && p.window_left >= 0) ++keys.first;
  if (mutation == ExtraMutation::window_begins_with_a_tile) keys.first = keys.first / 32 * 32;
  if (mutation == ExtraMutation::window_ends_early && p.window_right >= 0) --keys.end;
  keys.end = min(keys.end, p.seq_k);
  if (mutation == ExtraMutation::key_of_the_neighbour && p.packed) ++keys.end;
  return keys;
}

struct Score {
  float value, slope;
};
__device__ Score score(ExtraMutation mutation, const Problem& p, const float* alibi, int head, int i, int j, float s) {
  Score made = {s * p.scale, 1};
  if (mutation == ExtraMutation::scale_of_v) made.value *= sqrtf(float(p.head_dim) / p.v_dim());
  const bool forgotten = mutation == ExtraMutation::softcap_without_windows && p.window_left >= 0;
  if (p.softcap > 0 && !forgotten) {
    const float tanh = tanhf(made.value / p.softcap);
    made = {p.softcap * tanh, 1 - tanh * tanh};
    if (mutation == ExtraMutation::softcap_of_the_product) made.value = p.scale * p.softcap * tanhf(s / p.softcap);
    if (mutation == ExtraMutation::softcap_without_slope) made.slope = 1;
  }
  if (p.alibi) {
    const int distance = i + p.seq_k - p.seq_q - j;
    const int of = mutation == ExtraMutation::alibi_of_first_batch ? head % p.heads : head;
    made.value -= alibi[of] * (mutation == ExtraMutation::alibi_on_one_side ? max(distance, 0) : abs(distance));
  }
  return made;
}

template <class T>
__global__ void extras_forward(ExtraMutation mutation, Problem p, Inputs<T> in, Tensor<T> o, float* lse) {
  const int row = blockIdx.x * threads + threadIdx.x, rows = in.lse_rows, head = row / rows, D = p.v_dim();  // of O
  int i = row % rows, begin = 0;
  if (head >= (p.packed ? 1 : p.batch) * p.heads) return;
  if (lengths_are_wrong(p, in)) {
    lse[row] = __uint_as_float(0xffffffff);
    fill_with_nan(o.row(head, p.heads, i), D);
    if (mutation == ExtraMutation::zeros_of_wrong_lengths || mutation == ExtraMutation::zeros_of_wrong_lists)
      fill(o.row(head, p.heads, i), D, 0);
    return;
  }
  if (p.packed && !enter(mutation, p, in, in.begin_q, i, begin)) {
    if (mutation == ExtraMutation::writes_behind_sequences) fill(o.row(head, p.heads, i), D, 0);
    return;
  }
  o.data += begin * o.strides.row, i -= begin;
  if (mutation == ExtraMutation::last_tile_of_a_sequence && p.packed && p.seq_q > 64 && i >= p.seq_q / 64 * 64) return;
  const Problem::Span keys = keys_of(mutation, p, i);
  float m = -INFINITY, l = 0, o_reg[max_head_dim] = {};
  const auto add = [&](float s, const T* v) {
    if (s == -INFINITY) return;
    const float larger = fmaxf(m, s), correction = m == -INFINITY ? 0 : expf(m - larger), weight = expf(s - larger);
    l = l * correction + weight, m = larger;
    for (int d = 0; d < D; ++d) o_reg[d] = o_reg[d] * correction + (v ? weight * to_float(v[d]) : 0);
  };
  for (int j = keys.first; j < keys.end; ++j) {
    if (!sees(mutation, p, in.blocks, head, i, j)) continue;
    const float s = dot(in.q.row(head, p.heads, i), in.k.row(p.kv_head(head), p.kv_heads, j), p.head_dim);
    add(score(mutation, p, in.alibi, head, i, j, s).value, in.v.row(p.kv_head(head), p.kv_heads, j));
  }
  const float without = l == 0 ? -INFINITY : m + logf(l);
  if (p.sink && mutation != ExtraMutation::no_sink)
    add(mutation == ExtraMutation::sink_of_zero ? 0 : in.sink[head % p.heads], nullptr);
  lse[row] = mutation == ExtraMutation::sink_not_in_lse ? without : l == 0 ? -INFINITY : m + logf(l);
  T* to = o.row(head, p.heads, i);
  if (mutation == ExtraMutation::rows_without_gaps) to = o.data + int64_t(row) * D;
  for (int d = 0; d < D; ++d) to[d] = from_float<T>(l == 0 ? 0 : o_reg[d] / l);
  if (mutation == ExtraMutation::writes_into_gaps && p.views) to[D] = from_float<T>(0);
}

// P and dS of a pair.
template <class T>
__device__ float2 p_and_ds(ExtraMutation mutation, const Problem& p, const Inputs<T>& in, int head, int i, int j,
                           bool by_key) {
  const int D = p.v_dim(), kv_head = p.kv_head(head);
  const Problem::Span keys = keys_of(mutation, p, i);
  if (j < keys.first || j >= keys.end || !sees(mutation, p, in.blocks, head, i, j, by_key)) return make_float2(0, 0);
  const T *q = in.q.row(head, p.heads, i), *d_o = in.d_o.row(head, p.heads, i), *o = in.o.row(head, p.heads, i);
  const float s = dot(q, in.k.row(kv_head, p.kv_heads, j), p.head_dim);
  const Score made = score(mutation, p, in.alibi, head, i, j, s);
  const float weight = expf(made.value - in.lse[int64_t(head) * in.lse_rows + i]);
  return make_float2(weight, weight * made.slope * (dot(d_o, in.v.row(kv_head, p.kv_heads, j), D) - dot(d_o, o, D)));
}

template <class T>
__global__ void extras_dq(ExtraMutation mutation, Problem p, Inputs<T> in, Tensor<T> dq) {
  const int row = blockIdx.x * threads + threadIdx.x, rows = in.lse_rows, head = row / rows, D = p.head_dim;
  int i = row % rows, begin = 0;
  if (head >= (p.packed ? 1 : p.batch) * p.heads) return;
  if (lengths_are_wrong(p, in)) return fill_with_nan(dq.row(head, p.heads, i), D);
  if (p.packed && !enter(mutation, p, in, in.begin_q, i, begin)) return;
  dq.data += begin * dq.strides.row, i -= begin;
  float sum[max_head_dim] = {};
  const Problem::Span keys = keys_of(mutation, p, i);
  for (int j = keys.first; j < keys.end; ++j) {
    const float ds = p_and_ds(mutation, p, in, head, i, j, false).y;
    const T* k = in.k.row(p.kv_head(head), p.kv_heads, j);
    for (int d = 0; d < D; ++d) sum[d] += ds * to_float(k[d]);
  }
  for (int d = 0; d < D; ++d) dq.row(head, p.heads, i)[d] = from_float<T>(sum[d] * p.scale);
}

template <class T>
__global__ void extras_dk_dv(ExtraMutation mutation, Problem p, Inputs<T> in, Tensor<T> dk, Tensor<T> dv) {
  const int row = blockIdx.x * threads + threadIdx.x, rows = p.packed ? p.total_k : p.seq_k;
  const int D = mutation == ExtraMutation::dk_as_wide_as_v ? p.v_dim() : p.head_dim;
  const int kv_head = row / rows;
  int j = row % rows, begin = 0;
  if (kv_head >= (p.packed ? 1 : p.batch) * p.kv_heads) return;
  if (lengths_are_wrong(p, in)) {
    fill_with_nan(dk.row(kv_head, p.kv_heads, j), p.head_dim);
    return fill_with_nan(dv.row(kv_head, p.kv_heads, j), p.v_dim());
  }
  if (p.packed && !enter(mutation, p, in, in.begin_k, j, begin)) return;
  dk.data += begin * dk.strides.row, dv.data += begin * dv.strides.row, j -= begin;
  if (mutation == ExtraMutation::keys_without_queries && p.seq_q == 0) return;
  float dk_sum[max_head_dim] = {}, dv_sum[max_head_dim] = {};
  Problem::Span queries = p.queries_of(j);
  if (mutation == ExtraMutation::last_query_of_window && p.window_left >= 0) --queries.end;
  if (mutation == ExtraMutation::query_of_the_neighbour && p.packed) ++queries.end;
  if (mutation == ExtraMutation::unseen_keys_unwritten && queries.end <= queries.first) return;
  const int group = p.heads / p.kv_heads;
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head)
    for (int i = queries.first; i < queries.end; ++i) {
      const float2 of_pair = p_and_ds(mutation, p, in, head, i, j, true);
      for (int d = 0; d < p.v_dim(); ++d) dv_sum[d] += of_pair.x * to_float(in.d_o.row(head, p.heads, i)[d]);
      for (int d = 0; d < D; ++d) dk_sum[d] += of_pair.y * to_float(in.q.row(head, p.heads, i)[d]);
    }
  for (int d = 0; d < D; ++d) dk.row(kv_head, p.kv_heads, j)[d] = from_float<T>(dk_sum[d] * p.scale);
  for (int d = 0; d < p.v_dim(); ++d) dv.row(kv_head, p.kv_heads, j)[d] = from_float<T>(dv_sum[d]);
}

template <class T>
__global__ void extras_d_sink(ExtraMutation mutation, Problem p, Inputs<T> in, float* d_sink) {
  const int h = threadIdx.x + blockIdx.x * threads;
  if (h >= p.heads) return;
  float sum = 0;
  if (lengths_are_wrong(p, in)) {
    d_sink[h] = __uint_as_float(0xffffffff);
    return;
  }
  if (p.packed) p.seq_q = in.begin_q[p.batch], p.batch = 1;  // all of them
  for (int b = 0; b < (mutation == ExtraMutation::sink_of_one_batch ? 1 : p.batch); ++b)
    for (int i = 0; i < p.seq_q; ++i) {
      const int head = b * p.heads + h;
      const float delta = dot(in.d_o.row(head, p.heads, i), in.o.row(head, p.heads, i), p.v_dim());
      sum += expf(in.sink[h] - in.lse[int64_t(head) * in.lse_rows + i]) * delta;
    }
  d_sink[h] = mutation == ExtraMutation::sink_pushed_up ? sum : -sum;
}

// Whether a block mask's lists are none, seen in a copy on the host. While a stream is captured nothing can be copied,
// and they are taken as they are.
bool are_wrong(const Problem& p, const attention::BlockMask& mask, bool with_columns, cudaStream_t stream) {
  if (p.blocks == attention::BlockPattern::none) return false;
#ifndef WORKBOOK_SIMT  // the engine's kinds capture nothing
  cudaStreamCaptureStatus status;
  check(cudaStreamIsCapturing(stream, &status));
  if (status != cudaStreamCaptureStatusNone) return false;
#endif
  constexpr int tile = attention::BlockMask::tile;
  const auto copied = [&]<class Number>(const Number* data, size_t count) {
    std::vector<Number> copy(count);
    check(cudaMemcpyAsync(copy.data(), data, count * sizeof(Number), cudaMemcpyDefault, stream));
    return copy;
  };
  const int lists = (p.seq_q + tile - 1) / tile + (p.seq_k + tile - 1) / tile + 2;
  const auto begin = copied(mask.begin, size_t(mask.batch) * mask.heads * lists);
  const auto tiles = copied(mask.tiles, size_t(mask.listed) * 4);
  const auto bits = copied(mask.bits, size_t(mask.cuts) * 2 * tile * attention::BlockMask::words);
  check(cudaStreamSynchronize(stream));
  attention::BlockMask copy = mask;
  copy.begin = begin.data(), copy.tiles = tiles.data(), copy.bits = bits.data();
  return !attention::wrong_lists(p, copy, with_columns).empty();
}

template <class T, class Args>
Inputs<T> inputs_of(const Problem& p, const Args& args, cudaStream_t stream) {
  const auto tensor = [&](const void* data, const Strides& strides, int heads, int rows, int columns) {
    const Strides dense = attention::contiguous(p, heads, rows, columns);
    return Tensor<const T>{static_cast<const T*>(data), p.views ? strides : dense};
  };
  Inputs<T> in = {tensor(args.q, args.q_strides, p.heads, p.seq_q, p.head_dim),
                  tensor(args.k, args.k_strides, p.kv_heads, p.seq_k, p.head_dim),
                  tensor(args.v, args.v_strides, p.kv_heads, p.seq_k, p.v_dim()),
                  tensor(args.o, args.o_strides, p.heads, p.seq_q, p.v_dim()),
                  {},
                  args.lse,
                  args.alibi,
                  args.sink,
                  args.cu_seqlens_q,
                  args.cu_seqlens_k,
                  p.packed ? p.total_q : p.seq_q,
                  args.blocks,
                  are_wrong(p, args.blocks, std::is_same_v<Args, BackwardArgs>, stream)};
  if constexpr (std::is_same_v<Args, BackwardArgs>)
    in.d_o = tensor(args.d_o, args.d_o_strides, p.heads, p.seq_q, p.v_dim());
  return in;
}

template <class T>
Tensor<T> result(const Problem& p, void* data, const Strides& strides, int heads, int rows, int columns) {
  return {static_cast<T*>(data), p.views ? strides : attention::contiguous(p, heads, rows, columns)};
}

inline unsigned blocks(size_t rows) { return unsigned((rows + threads - 1) / threads); }

template <ExtraMutation mutation>
void run_forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  const auto run = [&]<class T>(T) {
    launch(extras_forward<T>, {blocks(p.lse_size()), threads, 0, stream}, mutation, p, inputs_of<T>(p, args, stream),
           result<T>(p, args.o, args.o_strides, p.heads, p.seq_q, p.v_dim()), args.lse);
  };
  p.dtype == attention::DType::fp16 ? run(__half()) : run(__nv_bfloat16());
}

template <ExtraMutation mutation>
void run_backward(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  const auto run = [&]<class T>(T) {
    const Inputs<T> in = inputs_of<T>(p, args, stream);
    launch(extras_dq<T>, {blocks(p.lse_size()), threads, 0, stream}, mutation, p, in,
           result<T>(p, args.dq, args.dq_strides, p.heads, p.seq_q, p.head_dim));
    launch(extras_dk_dv<T>, {blocks(p.kv_rows()), threads, 0, stream}, mutation, p, in,
           result<T>(p, args.dk, args.dk_strides, p.kv_heads, p.seq_k, p.head_dim),
           result<T>(p, args.dv, args.dv_strides, p.kv_heads, p.seq_k, p.v_dim()));
    if (p.sink) launch(extras_d_sink<T>, {blocks(p.heads), threads, 0, stream}, mutation, p, in, args.d_sink);
  };
  p.dtype == attention::DType::fp16 ? run(__half()) : run(__nv_bfloat16());
}

template <size_t... mutation>
auto all_forward(std::index_sequence<mutation...>) {
  return std::array{run_forward<ExtraMutation(mutation)>...};
}
template <size_t... mutation>
auto all_backward(std::index_sequence<mutation...>) {
  return std::array{run_backward<ExtraMutation(mutation)>...};
}

// Of what is wider than 128, only what V's own head dim is about.
std::string unsupported(const Problem& p) {
  return p.head_dim_v && p.head_dim <= max_head_dim ? "" : attention::head_dim_not_8_to_128(p);
}

attention::Forward forward(ExtraMutation mutation, unsigned takes) {
  static const auto runs = all_forward(std::make_index_sequence<size_t(ExtraMutation::count)>());
  return {.unsupported = unsupported,
          .workspace_bytes = attention::no_workspace,
          .run = runs[size_t(mutation)],
          .writes_lse = true,
          .takes = takes};
}

attention::Backward backward(ExtraMutation mutation, unsigned takes) {
  static const auto runs = all_backward(std::make_index_sequence<size_t(ExtraMutation::count)>());
  return {.unsupported = unsupported,
          .workspace_bytes = attention::no_workspace,
          .run = runs[size_t(mutation)],
          .takes = takes};
}

}  // namespace mutants
