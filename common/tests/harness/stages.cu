#include <array>
#include <cmath>
#include <utility>

#include "device/numeric.h"
#include "device/watch.h"
#include "tests/harness/stages.h"

namespace stages {

using attention::BackwardArgs;
using attention::ForwardArgs;
using attention::Problem;

constexpr int Bc = 16;  // keys in a tile
constexpr int max_head_dim = 64;

__device__ float dot(const __half* a, const __half* b, int n) {
  float sum = 0;
  for (int d = 0; d < n; ++d) sum += to_float(a[d]) * to_float(b[d]);
  return sum;
}

// A thread block of one warp owns 32 rows, a thread one of them.
__global__ void make_o(Mistake mistake, Problem p, const __half* q, const __half* k, const __half* v, __half* o,
                       float* lse) {
  const int row_tiles = (p.seq_q + 31) / 32, head = int(blockIdx.x) / row_tiles % (p.batch * p.heads);
  const int i = int(blockIdx.x) % row_tiles * 32 + int(threadIdx.x), D = p.head_dim;
  const bool exists = i < p.seq_q;
  const int64_t row = int64_t(head) * p.seq_q + i, first_key = int64_t(p.kv_head(head)) * p.seq_k;
  float m = -INFINITY, l = 0, o_reg[max_head_dim] = {};
  const int last = mistake == Mistake::last_tile_left ? (p.seq_k - 1) / Bc * Bc : p.seq_k;
  for (int j0 = 0; j0 < last; j0 += Bc) {
    __syncthreads();  // tiles are steps
    const Watched scores = {row, j0, exists, p.seq_k - j0}, state = {row, 0, exists, D};
    float x[Bc], top = m;
    for (int j = 0; exists && j < Bc; ++j) {
      const int visible = mistake == Mistake::unmasked ? p.seq_k : p.visible_keys(i);
      const bool sees = j0 + j < visible;
      const int elements = mistake == Mistake::short_s ? D - 1 : D;
      x[j] = sees ? p.scale * dot(q + row * D, k + (first_key + j0 + j) * D, elements) : -INFINITY;
      top = fmaxf(top, x[j]);
      watch("S", scores, 0, j, x[j]);
    }
    if (mistake == Mistake::stale_m && j0 > 0) top = m;
    const float safe = top == -INFINITY ? 0 : top;
    if (mistake == Mistake::lane_m) {
      const float of_neighbour = __shfl_xor_sync(0xffffffff, m, 1);
      watch("m", {row - i + (i ^ 1), 0, (i ^ 1) < p.seq_q, D}, 0, 0, of_neighbour);
      __syncwarp();
    }
    if (mistake == Mistake::late) m = top;
    const float correction = mistake == Mistake::inverse ? expf(safe - m) : expf(m - safe);
    m = top;
    if (mistake != Mistake::uncorrected_l) l *= correction;
    for (int d = 0; d < D && mistake != Mistake::uncorrected_o; ++d) o_reg[d] *= correction;
    for (int j = 0; exists && j < Bc && j0 + j < p.seq_k; ++j) {
      const float weight = mistake == Mistake::p_in_base_2 ? exp2f(x[j] - safe) : expf(x[j] - safe);
      l += weight;
      for (int d = 0; d < D; ++d) o_reg[d] += weight * to_float(v[(first_key + j0 + j) * D + d]);
      watch("P", scores, 0, j, weight);
    }
    watch("m", state, 0, 0, m);
    watch("correction", state, 0, 0, correction);
    watch("l", state, 0, 0, l);
    for (int d = 0; d < D; ++d) watch("O", state, 0, d, o_reg[d]);
  }
  if (!exists) return;
  lse[row] = l == 0 ? -INFINITY : m + logf(l);
  const float factor = mistake == Mistake::halved_result ? 0.5f : 1;
  for (int d = 0; d < D; ++d) o[row * D + d] = from_float<__half>(l == 0 ? 0 : factor * o_reg[d] / l);
}

// dQ alone: a thread owns a row.
__global__ void make_dq(Mistake mistake, Problem p, const __half* q, const __half* k, const __half* v, const __half* o,
                        const float* lse, const __half* d_o, __half* dq) {
  const int64_t row = int64_t(blockIdx.x) * 32 + threadIdx.x;
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  const int head = int(row / p.seq_q), D = p.head_dim;
  const int64_t first_key = int64_t(p.kv_head(head)) * p.seq_k;
  const Watched pairs = {row, 0, 1, p.seq_k};
  const float sum = mistake == Mistake::ds_without_d ? 0 : dot(d_o + row * D, o + row * D, D);
  float dq_reg[max_head_dim] = {};
  for (int j = 0; j < p.seq_k; ++j) {
    const bool sees = j < p.visible_keys(int(row % p.seq_q));
    const float s = p.scale * dot(q + row * D, k + (first_key + j) * D, D);
    const float weight = !sees ? 0 : mistake == Mistake::p_without_lse ? expf(s) : expf(s - lse[row]);
    const float dp = dot(d_o + row * D, v + (first_key + j) * D, mistake == Mistake::short_dp ? D - 1 : D);
    const float ds = (mistake == Mistake::doubled_ds ? 2 : 1) * weight * (dp - sum);
    watch("S", pairs, 0, j, s);
    watch("P", pairs, 0, j, weight);
    watch("dP", pairs, 0, j, dp);
    watch("dS", pairs, 0, j, ds);
    for (int d = 0; d < D; ++d) dq_reg[d] += p.scale * ds * to_float(k[(first_key + j) * D + d]);
  }
  const float factor = mistake == Mistake::doubled_gradient ? 2 : 1;
  for (int d = 0; d < D; ++d) dq[row * D + d] = from_float<__half>(factor * dq_reg[d]);
}

template <Mistake mistake>
void run_forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  const auto tensor = [](const void* data) { return static_cast<const __half*>(data); };
  const int blocks = p.batch * p.heads * ((p.seq_q + 31) / 32) * (mistake == Mistake::rows_twice ? 2 : 1);
  launch(make_o, {unsigned(blocks), 32, 0, stream}, mistake, p, tensor(args.q), tensor(args.k), tensor(args.v),
         static_cast<__half*>(args.o), args.lse);
}

template <Mistake mistake>
void run_backward(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  const auto tensor = [](const void* data) { return static_cast<const __half*>(data); };
  launch(make_dq, {unsigned((p.lse_size() + 31) / 32), 32, 0, stream}, mistake, p, tensor(args.q), tensor(args.k),
         tensor(args.v), tensor(args.o), args.lse, tensor(args.d_o), static_cast<__half*>(args.dq));
}

constexpr size_t mistakes = size_t(Mistake::doubled_gradient) + 1;

std::string supported(const Problem&) { return ""; }

attention::Forward forward(Mistake mistake) {
  const auto all = []<size_t... i>(std::index_sequence<i...>) { return std::array{&run_forward<Mistake(i)>...}; }
  (std::make_index_sequence<mistakes>());
  return {supported, attention::no_workspace, all[size_t(mistake)], true};
}

attention::Backward backward(Mistake mistake) {
  const auto all = []<size_t... i>(std::index_sequence<i...>) { return std::array{&run_backward<Mistake(i)>...}; }
  (std::make_index_sequence<mistakes>());
  return {supported, attention::no_workspace, all[size_t(mistake)]};
}

}  // namespace stages
