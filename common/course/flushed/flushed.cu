// The kernels of an exercise of chapter 13: attention in eight bits, whose sums are those of a tensor core.
//
//   find_largest   the largest element of Q, K or V     a thread block for each
//   round          what e4m3 leaves of an element       a thread per element
//   attend         O and LSE of a query row             a thread per row, 64 rows a thread block
//
// m is the row's maximum, which a first pass over its keys finds. Then 32 keys at a time go to add_products(), which
// adds as a tensor core does: what is 13 bits behind the largest of them and of the sum so far is cut off.
//
// What is different from chapter 13's kernels: the tensor core is a function. So they run on every GPU.
//
// Expected limit: the load unit. A number of K serves one row; tiles in shared memory would help.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/fp8.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace flushed {

using attention::ForwardArgs;
using attention::Problem;

constexpr int Br = 64;          // query rows of a thread block, one to a thread
constexpr int step = 32;        // keys that a tensor core adds up at a time
constexpr int tile = 4 * step;  // keys of a tile of chapter 13
constexpr int threads = 256;    // of a thread block of the other kernels

template <class T>
__global__ void __launch_bounds__(threads)
    find_largest(const T* q, const T* k, const T* v, size_t q_size, size_t kv_size, float* largest) {
  __shared__ float of_thread[threads];
  const T* const x = blockIdx.x == 0 ? q : blockIdx.x == 1 ? k : v;
  float most = 0;
  for (size_t i = threadIdx.x; i < (blockIdx.x == 0 ? q_size : kv_size); i += threads)
    if (const float magnitude = fabsf(to_float(x[i])); magnitude < INFINITY) most = fmaxf(most, magnitude);
  of_thread[threadIdx.x] = most;
  __syncthreads();
  for (int t = 0; t < threads; ++t) most = fmaxf(most, of_thread[t]);
  if (threadIdx.x == 0) largest[blockIdx.x] = fmaxf(most, smallest_divisor);
}

template <class T>
__global__ void __launch_bounds__(threads)
    round(const T* q, const T* k, const T* v, size_t q_size, size_t kv_size, const float* largest, float* rounded) {
  const int tensor = blockIdx.y;
  const T* const x = tensor == 0 ? q : tensor == 1 ? k : v;
  const size_t i = size_t(blockIdx.x) * threads + threadIdx.x;
  if (i >= (tensor == 0 ? q_size : kv_size)) return;
  const float scale = largest[tensor] / largest_e4m3, number = to_float(x[i]);
  const float scaled = fabsf(number) < INFINITY ? number / scale : NAN;
  rounded[(tensor > 0 ? q_size : 0) + (tensor > 1 ? kv_size : 0) + i] =
      to_float(from_float<__nv_fp8_e4m3>(scaled)) * scale;
}

// sum, and weight[j] * v[j * stride] of the keys that there are, as a tensor core adds them up.
__device__ inline float add_products(float sum, const float (&weight)[step], const float* v, int stride, int keys) {
  float largest = fabsf(sum);
  for (int j = 0; j < keys; ++j) largest = fmaxf(largest, fabsf(weight[j] * v[j * stride]));
  const float last_bit = largest > 0 && largest < INFINITY ? exp2f(floorf(log2f(largest)) - 13) : 0;
  const auto cut = [&](float x) { return last_bit > 0 ? truncf(x / last_bit) * last_bit : x; };
  sum = cut(sum);
  for (int j = 0; j < keys; ++j) sum += cut(weight[j] * v[j * stride]);
  return sum;
}

template <class T, int D>
__global__ void __launch_bounds__(Br)
    attend(Problem p, const float* q, const float* k, const float* v, T* o, float* lse) {
  const size_t row = size_t(blockIdx.x) * Br + threadIdx.x;
  if (row >= size_t(p.batch) * p.heads * p.seq_q) return;
  const int head = int(row / p.seq_q), i = int(row % p.seq_q), visible = p.visible_keys(i);
  q += row * D, k += size_t(p.kv_head(head)) * p.seq_k * D, v += size_t(p.kv_head(head)) * p.seq_k * D;
  const auto score = [&](int j) {
    float s = 0;
    for (int d = 0; d < D; ++d) s += q[d] * k[size_t(j) * D + d];
    return p.scale * s;
  };
  float m = -INFINITY, l = 0, sum[D] = {}, part[D] = {};
  for (int j = 0; j < visible; ++j) m = fmaxf(m, score(j));
  if (m == -INFINITY) m = 0;

  for (int j0 = 0; j0 < visible; j0 += step) {
    const int keys = min(step, visible - j0);
    float weight[step];
    for (int j = 0; j < keys; ++j) {
      const float exact = expf(score(j0 + j) - m);
      weight[j] = to_float(from_float<__nv_fp8_e4m3>(exact)), l += exact;
    }
    const float* v_step = v + size_t(j0) * D;
    // exercise flush: add these products to `sum` by add_products(), none of whose sums is of more than a tile of keys
    const bool last = (j0 + step) % tile == 0 || j0 + step >= visible;
    for (int d = 0; d < D; ++d) part[d] = add_products(part[d], weight, v_step + d, D, keys);
    for (int d = 0; last && d < D; ++d) sum[d] += part[d], part[d] = 0;
    // end flush | for (int d = 0; d < D; ++d) sum[d] = add_products(sum[d], weight, v_step + d, D, keys);
  }
  watch_step("O / l and LSE");
  for (int d = 0; d < D; ++d) o[row * D + d] = from_float<T>(visible > 0 ? sum[d] / l : 0);
  lse[row] = visible > 0 ? m + logf(l) : -INFINITY;
}

size_t workspace_bytes(const Problem& p) { return (p.q_size() + 2 * p.kv_size() + 4) * sizeof(float); }

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    float* const rounded = static_cast<float*>(args.workspace);
    float* const largest = rounded + p.q_size() + 2 * p.kv_size();
    const unsigned most = unsigned(ceil_div(p.q_size() > p.kv_size() ? p.q_size() : p.kv_size(), size_t(threads)));
    launch(find_largest<T>, {3, threads, 0, stream}, q, k, v, p.q_size(), p.kv_size(), largest);
    launch(round<T>, {{most, 3}, threads, 0, stream}, q, k, v, p.q_size(), p.kv_size(), largest, rounded);
    launch(attend<T, D>, {unsigned(ceil_div(p.lse_size(), size_t(Br))), Br, 0, stream}, p, rounded,
           rounded + p.q_size(), rounded + p.q_size() + p.kv_size(), o, args.lse);
  });
}

constexpr attention::Forward unpadded = {.unsupported = attention::head_dim_not_8_to_128,
                                         .workspace_bytes = workspace_bytes,
                                         .run = run,
                                         .writes_lse = true,
                                         .eight_bits = attention::scale_of_tensor};

extern const attention::Chapter chapter;
const attention::Chapter chapter = {.name = "flushed",
                                    .idea = "no sum of a tensor core is of more than a tile of keys",
                                    .rungs = {{.name = "flushed",
                                               .idea = "no sum of a tensor core is of more than a tile of keys",
                                               .forward = attention::padded<unpadded>}}};

}  // namespace flushed
