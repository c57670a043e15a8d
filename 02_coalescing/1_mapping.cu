// Chapter 02, rung 1, mapping: the lanes of a warp read neighbouring numbers.
//
//   1. scores   S = scale * Q K^T, -inf where the mask hides a key     a warp per row of S
//   2. softmax  P = softmax(S), over S in place                        a thread per row of S, as in chapter 01
//   3. output   O = P V                                                a warp per row of O
//
// What changed since chapter 01: in both products a *warp* owns a row of the result, eight warps to a thread block, and
// its lanes lie along d, as the rows of Q, K, V and O do in memory. In output a lane makes columns lane, lane + 32, ..
// of O, alone. In scores the 32 lanes share every dot product: a lane multiplies its numbers of the two rows, and
// shuffles add up what the lanes have. After 32 keys each lane keeps one score, and the warp stores them together. The
// tiles of the result, and the two ways to walk through them, are gone.
//
// A load still brings two bytes to a lane, but those of a warp are 64 consecutive bytes: 2 sectors, not 32.
//
// Expected limit: in scores the five shuffles for each key, which pass through the load unit as loads do, and the
// instructions around them.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace coalescing {
namespace {

using attention::ForwardArgs;
using attention::Problem;

constexpr int warps = 8;  // per thread block, a row each

// The row of Q, S and O that this warp owns, over all batches and heads: (b * H + h) * Nq + i.
__device__ int64_t my_row() { return int64_t(blockIdx.x) * warps + threadIdx.x / 32; }

template <class T>
__global__ void scores(Problem p,
                       const T* q,  // [B, H, Nq, D]
                       const T* k,  // [B, Hkv, Nk, D]
                       float* s)    // [B, H, Nq, Nk]
{
  const int64_t row = my_row();
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  const int head = int(row / p.seq_q), i = int(row % p.seq_q);
  const int lane = threadIdx.x % 32;
  const int visible = p.visible_keys(i);

  watch_step("1. S = Q K^T");
  const T* q_row = q + row * p.head_dim;
  const T* k_head = k + int64_t(p.kv_head(head)) * p.seq_k * p.head_dim;

  // 32 keys a step: the lanes then hold one score each, and store them as 128 consecutive bytes.
  for (int j0 = 0; j0 < p.seq_k; j0 += 32) {
    float my_score = 0;
    for (int j = j0; j < j0 + 32 && j < p.seq_k; ++j) {
      const T* k_row = k_head + int64_t(j) * p.head_dim;
      float sum = 0;
      // exercise scores: this dot product, which the 32 lanes share, so that their loads read neighbouring numbers
      for (int d = lane; d < p.head_dim; d += 32) sum += to_float(q_row[d]) * to_float(k_row[d]);
      sum = warp_sum(sum);
      // end scores |
      if (j == j0 + lane) my_score = sum;  // all lanes have the sum, each time a different one keeps it
    }
    const int j = j0 + lane;  // the key of the kept sum
    if (j < p.seq_k) s[row * p.seq_k + j] = j < visible ? p.scale * my_score : -INFINITY;
    watch("S", {row, 0, 1, p.seq_k}, 0, j, s + row * p.seq_k + j);
  }
}

__global__ void softmax(Problem p, float* s)  // [B, H, Nq, Nk], replaced by P
{
  const int64_t row = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  float* s_row = s + row * p.seq_k;

  watch_step("2. P = exp(S - m) / l");
  float m = -INFINITY;  // subtracted from every score, so that exp cannot overflow
  for (int j = 0; j < p.seq_k; ++j) m = fmaxf(m, s_row[j]);
  if (m == -INFINITY) m = 0;  // the row sees no key; keeps -inf - -inf = NaN out of exp
  float l = 0;
  for (int j = 0; j < p.seq_k; ++j) l += expf(s_row[j] - m);
  const Watched watched = {row, 0, 1, p.seq_k};
  watch("m", watched, 0, 0, m);
  watch("l", watched, 0, 0, l);
  for (int j = 0; j < p.seq_k; ++j) s_row[j] = l == 0 ? 0 : expf(s_row[j] - m) / l;
  for (int j = 0; j < p.seq_k; ++j) watch("P", watched, 0, j, s_row + j);
}

template <class T>
__global__ void output(Problem p,
                       const float* probabilities,  // [B, H, Nq, Nk]
                       const T* v,                  // [B, Hkv, Nk, D]
                       T* o)                        // [B, H, Nq, D]
{
  const int64_t row = my_row();
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  const int head = int(row / p.seq_q);
  const int lane = threadIdx.x % 32;

  watch_step("3. O = P V");
  const float* p_row = probabilities + row * p.seq_k;
  const T* v_head = v + int64_t(p.kv_head(head)) * p.seq_k * p.head_dim;

  for (int d = lane; d < p.head_dim; d += 32) {
    float sum = 0;
    for (int j = 0; j < p.seq_k; ++j) sum += p_row[j] * to_float(v_head[int64_t(j) * p.head_dim + d]);
    o[row * p.head_dim + d] = from_float<T>(sum);
  }
}

void forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype(p, [&]<class T>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    float* s = static_cast<float*>(args.workspace);
    const int64_t rows = int64_t(p.batch) * p.heads * p.seq_q;
    const dim3 grid(unsigned(ceil_div(rows, warps))), block(warps * 32);
    constexpr int softmax_rows = 128;  // rows, and so threads, of a softmax block: four warps, one per scheduler

    launch(scores<T>, {grid, block, 0, stream}, p, q, k, s);
    launch(softmax, {unsigned(ceil_div(rows, softmax_rows)), softmax_rows, 0, stream}, p, s);
    launch(output<T>, {grid, block, 0, stream}, p, s, v, o);
  });
}

// S: four bytes for every pair of a query and a key.
size_t workspace_bytes(const Problem& p) { return p.lse_size() * p.seq_k * sizeof(float); }

}  // namespace

extern const attention::Rung mapping;
constinit const attention::Rung mapping = {
    .name = "mapping",
    .idea = "a warp per row of both products, lanes along d: 32 consecutive addresses, shuffles add up the scores",
    .forward = {attention::head_dim_not_8_to_256, workspace_bytes, forward}};

}  // namespace coalescing
