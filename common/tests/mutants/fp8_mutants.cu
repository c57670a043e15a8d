// Attention in eight bits as plain as can be, with a switch for every mistake: a kernel finds the scale of each tensor,
// a second one rounds and multiplies by the scale again, and a third owns a row of O in each thread.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "device/fp8.h"
#include "device/launch.h"
#include "device/numeric.h"
#include "tests/mutants/mutants.h"

namespace mutants {
namespace {

using attention::ForwardArgs;
using attention::Problem;

constexpr int threads = 64, max_head_dim = 128;

// Of Q, K and V.
struct Rounded {
  float *q, *k, *v;  // what eight bits leave of them
  float* largest;    // [3]
};
Rounded in_workspace(const Problem& p, void* workspace) {
  float* const q = static_cast<float*>(workspace);
  return {q, q + p.q_size(), q + p.q_size() + p.kv_size(), q + p.q_size() + 2 * p.kv_size()};
}
size_t workspace_bytes(const Problem& p) { return (p.q_size() + 2 * p.kv_size() + 4) * sizeof(float); }

// A block for each tensor.
template <class T>
__global__ void find_largest(const T* q, const T* k, const T* v, size_t q_size, size_t kv_size, Fp8Mutation mutation,
                             float* largest) {
  __shared__ float of_thread[threads];
  const T* const x = blockIdx.x == 0 ? q : blockIdx.x == 1 ? k : v;
  size_t size = blockIdx.x == 0 ? q_size : kv_size;
  if (mutation == Fp8Mutation::scale_of_a_part) size /= 2;
  float most = 0;
  for (size_t i = threadIdx.x; i < size; i += threads)
    if (const float magnitude = fabsf(to_float(x[i])); magnitude < INFINITY || mutation == Fp8Mutation::infinite_scale)
      most = fmaxf(most, magnitude);
  of_thread[threadIdx.x] = most;
  __syncthreads();
  for (int t = 0; t < threads; t++) most = fmaxf(most, of_thread[t]);
  if (threadIdx.x == 0) largest[blockIdx.x] = fmaxf(most, smallest_divisor);
}

template <class T>
__global__ void round(const T* q, const T* k, const T* v, size_t q_size, size_t kv_size, Fp8Mutation mutation,
                      Rounded to) {
  const float largest = to.largest[blockIdx.y], inverse = largest_e4m3 / largest;
  const T* const x = blockIdx.y == 0 ? q : blockIdx.y == 1 ? k : v;
  float* const rounded = blockIdx.y == 0 ? to.q : blockIdx.y == 1 ? to.k : to.v;
  const bool dropped = (mutation == Fp8Mutation::no_scale_of_k && blockIdx.y == 1) ||
                       (mutation == Fp8Mutation::no_scale_of_v && blockIdx.y == 2);
  const size_t i = size_t(blockIdx.x) * threads + threadIdx.x;
  if (i >= (blockIdx.y == 0 ? q_size : kv_size)) return;
  float scaled = to_float(x[i]) * inverse;
  if (!(fabsf(to_float(x[i])) < INFINITY) && mutation != Fp8Mutation::infinity_saturates) scaled = NAN;
  rounded[i] = to_float(from_float<__nv_fp8_e4m3>(scaled)) * (dropped ? 1 : largest / largest_e4m3);
}

// What a tensor core keeps of a sum and the products that it adds to it, all at once: 13 bits behind the largest
// exponent.
constexpr int step = 32;
__device__ float last_bit(float sum, const float (&products)[step], int keys) {
  float largest = fabsf(sum);
  for (int j = 0; j < keys; j++) largest = fmaxf(largest, fabsf(products[j]));
  return largest < INFINITY ? exp2f(floorf(log2f(largest)) - 13) : 0;
}
__device__ float cut(float x, float last_bit) { return last_bit > 0 ? truncf(x / last_bit) * last_bit : x; }

template <class T>
__global__ void attend(Problem p, Rounded in, Fp8Mutation mutation, T* o, float* lse) {
  const size_t row = size_t(blockIdx.x) * threads + threadIdx.x;
  if (row >= size_t(p.batch) * p.heads * p.seq_q) return;
  const int head = int(row / p.seq_q), i = int(row % p.seq_q), D = p.head_dim, visible = p.visible_keys(i);
  const float *q = in.q + row * D, *k = in.k + size_t(p.kv_head(head)) * p.seq_k * D;
  const float* v = in.v + size_t(p.kv_head(head)) * p.seq_k * D;
  const auto score = [&](int j) {
    float s = 0;
    for (int d = 0; d < D; d++) s += q[d] * k[size_t(j) * D + d];
    return p.scale * s;
  };
  float m = -INFINITY, l = 0, sum[max_head_dim] = {};
  for (int j = 0; j < visible; j++) m = fmaxf(m, score(j));
  if (m == -INFINITY) m = 0;
  for (int j = 0; j < visible; j++) l += expf(score(j) - m);
  const float unit = mutation == Fp8Mutation::rounded_once_divided ? l : 1;
  for (int j0 = 0; j0 < visible; j0 += step) {
    const int keys = visible - j0 < step ? visible - j0 : step;
    float weights[step], products[step];
    for (int j = 0; j < keys; j++)
      weights[j] = to_float(from_float<__nv_fp8_e4m3>(expf(score(j0 + j) - m) / unit)) * unit;
    for (int d = 0; d < D; d++) {
      for (int j = 0; j < keys; j++) {
        int place = j0 + j;  // within 16 keys, where registers have it
        if (mutation == Fp8Mutation::keys_as_registers && place / 16 * 16 + 16 <= visible)
          place = place / 16 * 16 + place % 2 + place / 2 % 2 * 8 + place / 4 % 4 * 2;
        products[j] = weights[j] * v[size_t(place) * D + d];
      }
      const float cut_at = mutation == Fp8Mutation::sum_never_flushed ? last_bit(sum[d], products, keys) : 0;
      sum[d] = cut(sum[d], cut_at);
      for (int j = 0; j < keys; j++) sum[d] += cut(products[j], cut_at);
    }
  }
  for (int d = 0; d < D; d++) o[row * D + d] = from_float<T>(visible > 0 ? sum[d] / l : 0);
  lse[row] = visible > 0 ? m + logf(l) : -INFINITY;
}

template <class T>
void launch_all(const Problem& p, const ForwardArgs& args, Fp8Mutation mutation, cudaStream_t stream) {
  const auto of = [](const void* data) { return static_cast<const T*>(data); };
  const Rounded in = in_workspace(p, args.workspace);
  const size_t most = std::max(p.q_size(), p.kv_size());
  launch(find_largest<T>, {3, threads, 0, stream}, of(args.q), of(args.k), of(args.v), p.q_size(), p.kv_size(),
         mutation, in.largest);
  launch(round<T>, {{unsigned(ceil_div(most, threads)), 3}, threads, 0, stream}, of(args.q), of(args.k), of(args.v),
         p.q_size(), p.kv_size(), mutation, in);
  launch(attend<T>, {unsigned(ceil_div(p.lse_size(), threads)), threads, 0, stream}, p, in, mutation,
         static_cast<T*>(args.o), args.lse);
}

template <Fp8Mutation mutation>
void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  (p.dtype == attention::DType::fp16 ? launch_all<__half> : launch_all<__nv_bfloat16>)(p, args, mutation, stream);
}

template <size_t... mutation>
auto make_all(std::index_sequence<mutation...>) {
  return std::array{attention::Forward{.unsupported = attention::head_dim_not_8_to_128,
                                       .workspace_bytes = workspace_bytes,
                                       .run = run<Fp8Mutation(mutation)>,
                                       .writes_lse = true,
                                       .eight_bits = attention::scale_of_tensor}...};
}

}  // namespace

attention::Forward forward(Fp8Mutation mutation) {
  static const auto forwards = make_all(std::make_index_sequence<size_t(Fp8Mutation::count)>());
  return forwards[size_t(mutation)];
}

}  // namespace mutants
