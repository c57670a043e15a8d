// A backward as plain as can be, with a switch for every mistake: a thread owns one row of dQ, or one row of dK and dV,
// and computes every P and dS that it needs from scratch.
#include <cmath>
#include <cstdint>

#include "device/numeric.h"
#include "tests/mutants/mutants.h"

namespace mutants {

using attention::BackwardArgs;
using attention::Problem;

constexpr int threads = 64;
constexpr int max_head_dim = 128;

template <class T>
struct Tensors {
  const T* q;        // [B, H, Nq, D]
  const T* k;        // [B, Hkv, Nk, D]
  const T* v;        // [B, Hkv, Nk, D]
  const T* o;        // [B, H, Nq, D]
  const float* lse;  // [B, H, Nq]
  const T* d_o;      // [B, H, Nq, D]
};

template <class T>
__device__ float dot(const T* a, const T* b, int n) {
  float sum = 0;
  for (int d = 0; d < n; ++d) sum += to_float(a[d]) * to_float(b[d]);
  return sum;
}

// P_ij and dS_ij = P_ij (dP_ij - D_i), D_i = sum over d of dO_id O_id. `row` counts the rows of Q over all heads,
// `key` those of K.
template <class T, BackwardMutation mutation>
__device__ float2 p_and_ds(const Problem& p, const Tensors<T>& t, int64_t row, int64_t key, bool visible) {
  const int D = p.head_dim;
  if (!visible && mutation != BackwardMutation::mask_forgotten && mutation != BackwardMutation::inf_times_zero)
    return make_float2(0, 0);
  float weight = expf(p.scale * dot(t.q + row * D, t.k + key * D, D) - t.lse[row]);
  if (mutation == BackwardMutation::inf_times_zero) weight *= visible ? 1 : 0;
  const float row_sum = mutation == BackwardMutation::no_row_sum ? 0 : dot(t.d_o + row * D, t.o + row * D, D);
  return make_float2(weight, weight * (dot(t.d_o + row * D, t.v + key * D, D) - row_sum));
}

template <class T, BackwardMutation mutation>
__global__ void dq_kernel(Problem p, Tensors<T> t, T* dq) {
  const int64_t row = int64_t(blockIdx.x) * threads + threadIdx.x;
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  const int head = int(row / p.seq_q), i = int(row % p.seq_q), D = p.head_dim;
  if (mutation == BackwardMutation::unwritten_dq && p.visible_keys(i) == 0) return;
  float dq_reg[max_head_dim] = {};
  for (int j = 0; j < p.seq_k; ++j) {
    const int64_t key = int64_t(p.kv_head(head)) * p.seq_k + j;
    const float ds = p_and_ds<T, mutation>(p, t, row, key, j < p.visible_keys(i)).y;
    for (int d = 0; d < D; ++d) dq_reg[d] += p.scale * ds * to_float(t.k[key * D + d]);
  }
  for (int d = 0; d < D; ++d) dq[row * D + d] = from_float<T>(dq_reg[d]);
}

template <class T, BackwardMutation mutation>
__global__ void dk_dv_kernel(Problem p, Tensors<T> t, T* dk, T* dv) {
  const int64_t key = int64_t(blockIdx.x) * threads + threadIdx.x;
  if (key >= int64_t(p.batch) * p.kv_heads * p.seq_k) return;
  const int kv_head = int(key / p.seq_k), j = int(key % p.seq_k), D = p.head_dim;
  const int group = p.heads / p.kv_heads;  // query heads kv_head * group .. of the whole batch read this kv head
  const int heads = mutation == BackwardMutation::one_head_of_group ? 1 : group;
  const int queries = mutation == BackwardMutation::dropped_last_query ? p.seq_q - 1 : p.seq_q;
  const float scale = mutation == BackwardMutation::unscaled_dk ? 1 : p.scale;
  float dk_reg[max_head_dim] = {}, dv_reg[max_head_dim] = {};
  for (int head = kv_head * group; head < kv_head * group + heads; ++head)
    for (int i = 0; i < queries; ++i) {
      const int64_t row = int64_t(head) * p.seq_q + i;
      const float2 p_ds = p_and_ds<T, mutation>(p, t, row, key, j < p.visible_keys(i));
      for (int d = 0; d < D; ++d) {
        dv_reg[d] += p_ds.x * to_float(t.d_o[row * D + d]);
        dk_reg[d] += scale * p_ds.y * to_float(t.q[row * D + d]);
      }
    }
  for (int d = 0; d < D; ++d) {
    dk[key * D + d] = from_float<T>(dk_reg[d]);
    dv[key * D + d] = from_float<T>(dv_reg[d]);
  }
}

template <BackwardMutation mutation>
attention::Backward make_backward() {
  attention::Backward pass;
  pass.unsupported = attention::head_dim_not_64_or_128;
  pass.workspace_bytes = [](const Problem&) { return size_t(0); };
  pass.run = [](const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
    const auto blocks = [](size_t rows) { return dim3(unsigned((rows + threads - 1) / threads)); };
    const auto run = [&]<class T>(T) {
      const auto tensor = [](const void* data) { return static_cast<const T*>(data); };
      const Tensors<T> t = {tensor(args.q), tensor(args.k), tensor(args.v), tensor(args.o), args.lse, tensor(args.d_o)};
      launch(dq_kernel<T, mutation>, {blocks(p.lse_size()), dim3(threads), 0, stream}, p, t, static_cast<T*>(args.dq));
      launch(dk_dv_kernel<T, mutation>, {blocks(p.kv_size() / p.head_dim), dim3(threads), 0, stream}, p, t,
             static_cast<T*>(args.dk), static_cast<T*>(args.dv));
    };
    if (p.dtype == attention::DType::fp16) run(__half());
    else run(__nv_bfloat16());
  };
  return pass;
}

attention::Backward backward(BackwardMutation mutation) {
  switch (mutation) {
    case BackwardMutation::none: return make_backward<BackwardMutation::none>();
    case BackwardMutation::no_row_sum: return make_backward<BackwardMutation::no_row_sum>();
    case BackwardMutation::unscaled_dk: return make_backward<BackwardMutation::unscaled_dk>();
    case BackwardMutation::one_head_of_group: return make_backward<BackwardMutation::one_head_of_group>();
    case BackwardMutation::mask_forgotten: return make_backward<BackwardMutation::mask_forgotten>();
    case BackwardMutation::dropped_last_query: return make_backward<BackwardMutation::dropped_last_query>();
    case BackwardMutation::inf_times_zero: return make_backward<BackwardMutation::inf_times_zero>();
    case BackwardMutation::unwritten_dq: return make_backward<BackwardMutation::unwritten_dq>();
  }
  return {};
}

}  // namespace mutants
