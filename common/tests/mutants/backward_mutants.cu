// A backward as plain as can be, with a switch for every mistake: a thread owns one row of dQ, or one row of dK and dV,
// and computes every P and dS that it needs from scratch. For dQ, K passes through shared memory in tiles. With RoPE,
// the rotated Q and K are made in the workspace before, and dQ and dK are rotated back after.
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "device/numeric.h"
#include "tests/mutants/mutants.h"

namespace mutants {

using attention::BackwardArgs;
using attention::Problem;

constexpr int threads = 64;
constexpr int Bc = 32;  // keys in a tile
constexpr int max_head_dim = 128;

template <class T>
struct Tensors {
  const T* q;        // [B, H, Nq, D]
  const T* k;        // [B, Hkv, Nk, D]
  const T* v;        // [B, Hkv, Nk, D]
  const T* o;        // [B, H, Nq, D]
  const float* lse;  // [B, H, Nq]
  const T* d_o;      // [B, H, Nq, D]
  float* row_sums;   // [B, H, Nq], D_i = sum over d of dO_id O_id
};

template <class T>
__device__ float dot(const T* a, const T* b, int n) {
  float sum = 0;
  for (int d = 0; d < n; ++d) sum += to_float(a[d]) * to_float(b[d]);
  return sum;
}

__device__ bool sees(BackwardMutation mutation, const Problem& p, int i, int j) {
  if (mutation == BackwardMutation::mask_wrong_side && p.mask == attention::Mask::causal)
    return j + 1 >= p.visible_keys(i);
  return j < p.visible_keys(i);
}

// P_ij and dS_ij = P_ij (dP_ij - D_i) for head `head` of the whole batch.
template <class T>
__device__ float2 p_and_ds(BackwardMutation mutation, const Problem& p, const Tensors<T>& t, int head, int i, int j) {
  const int D = p.head_dim;
  const int64_t row = int64_t(head) * p.seq_q + i, key = int64_t(p.kv_head(head)) * p.seq_k + j;
  const bool visible = sees(mutation, p, i, j);
  if (!visible && mutation != BackwardMutation::mask_forgotten && mutation != BackwardMutation::inf_times_zero)
    return make_float2(0, 0);
  const float lse = mutation == BackwardMutation::no_lse ? 0 : t.lse[row];
  float weight = expf(p.scale * dot(t.q + row * D, t.k + key * D, D) - lse);
  if (mutation == BackwardMutation::inf_times_zero) weight *= visible ? 1 : 0;
  if (mutation == BackwardMutation::clamped_p) weight = fminf(weight, 1);
  if (mutation == BackwardMutation::rounded_p_in_ds) weight = to_float(from_float<T>(weight));
  const float row_sum = mutation == BackwardMutation::no_row_sum ? 0 : t.row_sums[row];
  float ds = weight * (dot(t.d_o + row * D, t.v + key * D, D) - row_sum);
  if (mutation == BackwardMutation::rounded_p_in_ds) ds = to_float(from_float<T>(ds));  // no mistake: tensor cores do
  return make_float2(weight, ds);
}

// dS of a column past the last key, where K and V are 0, rounded as a tensor core would want it.
template <class T>
__device__ float ds_past_the_end(const Tensors<T>& t, int64_t row) {
  return to_float(from_float<T>(expf(-t.lse[row]) * -t.row_sums[row]));
}

template <class T>
__global__ void dq_kernel(BackwardMutation mutation, Problem p, Tensors<T> t,
                          T* dq)  // [B, H, Nq, D]
{
  __shared__ float k_smem[Bc][max_head_dim + 1];
  const int tiles = (p.seq_q + threads - 1) / threads, D = p.head_dim;
  const int head = blockIdx.x / tiles, i = int(blockIdx.x % tiles) * threads + int(threadIdx.x);
  const int64_t row = int64_t(head) * p.seq_q + i;
  const T* k_head = t.k + int64_t(p.kv_head(head)) * p.seq_k * D;
  float dq_reg[max_head_dim] = {};
  for (int j0 = 0; j0 < p.seq_k; j0 += Bc) {
    if (mutation != BackwardMutation::missing_reuse_barrier) __syncthreads();  // everyone is done with the tile before
    for (int n = threadIdx.x; n < Bc * D; n += threads)
      k_smem[n / D][n % D] = j0 + n / D < p.seq_k ? to_float(k_head[int64_t(j0) * D + n]) : 0;
    if (mutation != BackwardMutation::missing_barrier) __syncthreads();  // the tile is complete
    for (int j = 0; j < Bc && i < p.seq_q; ++j) {
      float ds = 0;
      if (j0 + j < p.seq_k)
        ds = p_and_ds(mutation, p, t, head, i, j0 + j).y;
      else if ((mutation == BackwardMutation::unmasked_tail ||
                (mutation == BackwardMutation::unmasked_only_tile && p.seq_k < Bc)) &&
               p.visible_keys(i) > 0)
        ds = ds_past_the_end(t, row);
      for (int d = 0; d < D; ++d) dq_reg[d] += p.scale * ds * k_smem[j][d];
    }
  }
  if (i >= p.seq_q || (mutation == BackwardMutation::unwritten_dq && p.visible_keys(i) == 0)) return;
  for (int d = 0; d < D; ++d) dq[row * D + d] = from_float<T>(dq_reg[d]);
}

template <class T>
__global__ void dk_dv_kernel(BackwardMutation mutation, Problem p, Tensors<T> t, T* dk, T* dv) {
  const int64_t key = int64_t(blockIdx.x) * threads + threadIdx.x;
  if (key >= int64_t(p.batch) * p.kv_heads * p.seq_k) return;
  const int kv_head = int(key / p.seq_k), j = int(key % p.seq_k), D = p.head_dim;
  const int group = p.heads / p.kv_heads;  // query heads kv_head * group .. of the whole batch read this kv head
  const int heads = mutation == BackwardMutation::one_head_of_group ? 1 : group;
  const int queries = mutation == BackwardMutation::dropped_last_query ? p.seq_q - 1 : p.seq_q;
  const float scale = mutation == BackwardMutation::unscaled_dk ? 1 : p.scale;
  int start = 0;  // the queries before see nothing of this key: leaving them out is no mistake, but
  if (mutation == BackwardMutation::late_start && p.mask == attention::Mask::causal) start = p.first_query(j) + 1;
  if (mutation == BackwardMutation::top_left_start && p.mask == attention::Mask::causal) start = j;
  float dk_reg[max_head_dim] = {}, dv_reg[max_head_dim] = {};
  for (int head = kv_head * group; head < kv_head * group + heads; ++head)
    for (int i = start; i < queries; ++i) {
      const int64_t row = int64_t(head) * p.seq_q + i;
      float2 p_ds = make_float2(0, 0);
      if (mutation != BackwardMutation::missing_transpose)
        p_ds = p_and_ds(mutation, p, t, head, i, j);
      else if (j < p.seq_q && i < p.seq_k)
        p_ds = p_and_ds(mutation, p, t, head, j, i);
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

// Turns rows by the angles of their positions, or back; `to` may be `from`. One thread a row.
template <class T>
__global__ void turn_rows(Problem p, attention::RopeTables rope,
                          const T* from,           // [heads, N, D]
                          T* to,                   // [heads, N, D]
                          int heads, int N,        // of the whole batch; rows of each
                          int first, float times)  // the position of row 0; how often, negative: back
{
  const int64_t row = int64_t(blockIdx.x) * threads + threadIdx.x;
  if (row >= int64_t(heads) * N) return;
  const int position = int(row % N) + first, half = p.head_dim / 2;
  for (int i = 0; i < half; ++i) {
    const float once = rope.sin[abs(position) * half + i] * (position < 0 ? -1 : 1);
    const float angle = times * atan2f(once, rope.cos[abs(position) * half + i]), sin = sinf(angle), cos = cosf(angle);
    const T* const pair = from + row * p.head_dim + i;
    const float a = to_float(pair[0]), b = to_float(pair[half]);
    to[row * p.head_dim + i] = from_float<T>(a * cos - b * sin);
    to[row * p.head_dim + i + half] = from_float<T>(b * cos + a * sin);
  }
}

// D_i of every row. A mistake adds it to what is there already, if that is a number; another writes one more than there
// are.
template <class T>
__global__ void sum_rows(BackwardMutation mutation, Problem p, Tensors<T> t) {
  const int64_t row = int64_t(blockIdx.x) * threads + threadIdx.x, rows = int64_t(p.batch) * p.heads * p.seq_q;
  if (row > rows || (row == rows && mutation != BackwardMutation::small_workspace)) return;
  float sum = row < rows ? dot(t.d_o + row * p.head_dim, t.o + row * p.head_dim, p.head_dim) : 0;
  const float before = mutation == BackwardMutation::stale_workspace ? t.row_sums[row] : 0;
  if (before == before) sum += before;  // it is no NaN
  t.row_sums[row] = sum;
}

template <BackwardMutation mutation>
attention::Backward make_backward() {
  attention::Backward pass;
  pass.deterministic = mutation != BackwardMutation::stale_workspace;
  pass.unsupported = attention::head_dim_not_8_to_128;
  pass.workspace_bytes = [](const Problem& p) {
    return p.lse_size() * sizeof(float) + (p.rope ? 2 * (p.q_size() + p.kv_size()) : 0);
  };
  pass.run = [](const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
    const auto blocks = [](size_t rows) { return dim3(unsigned((rows + threads - 1) / threads)); };
    const auto run = [&]<class T>(T) {
      const auto tensor = [](const void* data) { return static_cast<const T*>(data); };
      Tensors<T> t = {tensor(args.q),
                      tensor(args.k),
                      tensor(args.v),
                      tensor(args.o),
                      args.lse,
                      tensor(args.d_o),
                      static_cast<float*>(args.workspace)};
      T *const dq = static_cast<T*>(args.dq), *const dk = static_cast<T*>(args.dk);
      const int q_heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads, first = p.query_position(0);
      const auto turn = [&](const T* from, T* to, int heads, int N, int first, float times) {
        launch(turn_rows<T>, {blocks(size_t(heads) * N), dim3(threads), 0, stream}, p, args.rope, from, to, heads, N,
               first, times);
      };
      launch(sum_rows<T>, {blocks(p.lse_size() + 1), dim3(threads), 0, stream}, mutation, p, t);
      if (p.rope) {
        T* const q_rotated = reinterpret_cast<T*>(static_cast<float*>(args.workspace) + p.lse_size());
        T* const k_rotated = q_rotated + p.q_size();
        turn(t.q, q_rotated, q_heads, p.seq_q, first, 1);
        turn(t.k, k_rotated, kv_heads, p.seq_k, 0, 1);
        t.q = q_rotated, t.k = k_rotated;
      }
      const unsigned query_tiles = unsigned(p.batch * p.heads * ((p.seq_q + threads - 1) / threads));
      launch(dq_kernel<T>, {dim3(query_tiles), dim3(threads), 0, stream}, mutation, p, t, dq);
      launch(dk_dv_kernel<T>, {blocks(p.kv_size() / p.head_dim), dim3(threads), 0, stream}, mutation, p, t, dk,
             static_cast<T*>(args.dv));
      if (p.rope && mutation != BackwardMutation::rope_not_back) {
        const float back = mutation == BackwardMutation::rope_forward ? 1 : -1;
        const int group = mutation == BackwardMutation::rope_back_in_group ? p.heads / p.kv_heads : 1;
        turn(dq, dq, q_heads, p.seq_q, mutation == BackwardMutation::rope_back_from_zero ? 0 : first, back);
        turn(dk, dk, kv_heads, p.seq_k, 0, back * group);
      }
    };
    if (p.dtype == attention::DType::fp16)
      run(__half());
    else
      run(__nv_bfloat16());
  };
  return pass;
}

template <size_t... mutation>
auto make_all_backward(std::index_sequence<mutation...>) {
  return std::array{make_backward<BackwardMutation(mutation)>()...};
}

attention::Backward backward(BackwardMutation mutation) {
  static const auto backwards = make_all_backward(std::make_index_sequence<size_t(BackwardMutation::count)>());
  return backwards[size_t(mutation)];
}

}  // namespace mutants
