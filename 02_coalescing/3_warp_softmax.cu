// Chapter 02, rung 3, warp_softmax: a warp per row of the softmax as well.
//
//   1. scores   S = scale * Q K^T, -inf where the mask hides a key
//   2. softmax  P = softmax(S), over S in place
//   3. output   O = P V
//
// A *warp* owns a row, in all three kernels. Where K and V are read, eight lanes take one of their rows together, 16
// bytes each, so that the 32 lanes of a load cover four whole rows of 64 elements:
//
//   lane        0 .. 7        8 .. 15       16 .. 23      24 .. 31
//   row         j             j + 1         j + 2         j + 3
//   elements    0-7 .. 56-63  0-7 .. 56-63  0-7 .. 56-63  0-7 .. 56-63       512 bytes, 16 sectors, none wasted
//
// What changed since 2_vectors: in softmax the lanes of a warp walk along one row, where each lane walked along a row
// of its own, and warp_max and warp_sum put together what the lanes find. So the three kernels have the same grid.
//
// Expected limit: every row of S still reads all of K and V through the caches. (This did not limit the products:
// see the lesson.) Of softmax: DRAM.
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

constexpr int warps = 8;          // per thread block, a row each
constexpr int lanes_per_key = 8;  // 8 lanes x 16 bytes: the 128-byte cache line
constexpr int keys_per_load = 4;  // 32 lanes / lanes_per_key
constexpr int elements = 64;      // of a row of K or V that one load takes: lanes_per_key x 8

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
    for (int load = 0; load < lanes_per_key; ++load) {
      const int j = j0 + load * keys_per_load + lane / lanes_per_key;
      float sum = 0;
      for (int d = lane % lanes_per_key * 8; d < p.head_dim && j < p.seq_k; d += elements) {
        const Pack8<T> q8 = load_pack8(q_row + d), k8 = load_pack8(k_head + int64_t(j) * p.head_dim + d);
        for (int e = 0; e < 8; ++e) sum += to_float(q8.x[e]) * to_float(k8.x[e]);
      }
      for (int distance = 1; distance < lanes_per_key; distance *= 2) sum += __shfl_xor_sync(0xffffffff, sum, distance);
      if (load == lane % lanes_per_key) my_score = sum;  // all eight have the sum, each time a different one keeps it
    }
    const int j = j0 + lane % lanes_per_key * keys_per_load + lane / lanes_per_key;  // the key of the kept sum
    if (j < p.seq_k) s[row * p.seq_k + j] = j < visible ? p.scale * my_score : -INFINITY;
    watch("S", {row, 0, 1, p.seq_k}, 0, j, s + row * p.seq_k + j);
  }
}

__global__ void softmax(Problem p, float* s)  // [B, H, Nq, Nk], replaced by P
{
  const int64_t row = my_row();
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  float* s_row = s + row * p.seq_k;
  const int lane = threadIdx.x % 32;

  watch_step("2. P = exp(S - m) / l");
  float m = -INFINITY;  // subtracted from every score, so that exp cannot overflow
  for (int j = lane; j < p.seq_k; j += 32) m = fmaxf(m, s_row[j]);
  m = warp_max(m);
  if (m == -INFINITY) m = 0;  // the row sees no key; keeps -inf - -inf = NaN out of exp
  float l = 0;
  for (int j = lane; j < p.seq_k; j += 32) l += expf(s_row[j] - m);
  l = warp_sum(l);
  const Watched watched = {row, 0, 1, p.seq_k};
  watch("m", watched, 0, 0, m);
  watch("l", watched, 0, 0, l);
  for (int j = lane; j < p.seq_k; j += 32) s_row[j] = l == 0 ? 0 : expf(s_row[j] - m) / l;
  for (int j = lane; j < p.seq_k; j += 32) watch("P", watched, 0, j, s_row + j);
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

  for (int d0 = 0; d0 < p.head_dim; d0 += elements) {
    const int d = d0 + lane % lanes_per_key * 8;
    float sum[8] = {};  // over every fourth key, of O[row, d .. d + 7]
    if (d < p.head_dim)
      for (int j = lane / lanes_per_key; j < p.seq_k; j += keys_per_load) {
        const Pack8<T> v8 = load_pack8(v_head + int64_t(j) * p.head_dim + d);
        for (int e = 0; e < 8; ++e) sum[e] += p_row[j] * to_float(v8.x[e]);
      }

    Pack8<T> o8;
    for (int e = 0; e < 8; ++e) {
      for (int distance = lanes_per_key; distance < 32; distance *= 2)
        sum[e] += __shfl_xor_sync(0xffffffff, sum[e], distance);
      o8.x[e] = from_float<T>(sum[e]);
    }
    if (lane < lanes_per_key && d < p.head_dim) store_pack8(o + row * p.head_dim + d, o8);
  }
}

void forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype(p, [&]<class T>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    float* s = static_cast<float*>(args.workspace);

    const int64_t rows = int64_t(p.batch) * p.heads * p.seq_q;
    const dim3 grid(unsigned(ceil_div(rows, warps))), block(warps * 32);
    launch(scores<T>, {grid, block, 0, stream}, p, q, k, s);
    launch(softmax, {grid, block, 0, stream}, p, s);
    launch(output<T>, {grid, block, 0, stream}, p, s, v, o);
  });
}

// S: four bytes for every pair of a query and a key.
size_t workspace_bytes(const Problem& p) { return p.lse_size() * p.seq_k * sizeof(float); }

}  // namespace

extern const attention::Rung warp_softmax;
constinit const attention::Rung warp_softmax = {
    .name = "warp_softmax",
    .idea = "a warp per softmax row, lanes along it: its loads become consecutive, shuffles find maximum and sum",
    .forward = {attention::head_dim_not_8_to_256, workspace_bytes, forward}};

}  // namespace coalescing
