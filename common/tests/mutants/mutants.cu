// One streaming-softmax kernel, chapter 05's idea without its speed, with a switch for every mistake.
//
// A thread block owns 32 query rows, a thread one row and a quarter of the head dim of O. Keys and values pass through
// shared memory in tiles of 32.
#include <cmath>
#include <cstdint>

#include "device/numeric.h"
#include "tests/mutants/mutants.h"

namespace mutants {

using attention::ForwardArgs;
using attention::Mask;
using attention::Problem;
using attention::RopeTables;

constexpr int rows = 32;  // of a thread block; one warp for each quarter of the head dim
constexpr int quarters = 4;
constexpr int Bc = 32;     // keys in a tile
constexpr int max_head_dim = 128;

// Element d of a row of Q or K: as it is, or rotated and stored once more if the problem has RoPE.
template <class T, Mutation mutation>
__device__ float element(const Problem& p, const RopeTables& rope, int head,
                         const T* row,  // [D]
                         int d, int position) {
  if (!p.rope) return to_float(row[d]);
  const int half = p.head_dim / 2;
  const bool neighbours = mutation == Mutation::rope_neighbours;
  const int i = neighbours ? d / 2 : d % half;  // the pair: elements first and second
  const int first = neighbours ? 2 * i : i, second = neighbours ? 2 * i + 1 : i + half;
  int angle = abs(position);
  if (mutation == Mutation::rope_table_by_head) angle = (angle + head) % p.rope_rows();
  const float cos = rope.cos[angle * half + i];
  float sin = rope.sin[angle * half + i];
  if (position < 0 && mutation != Mutation::rope_no_negative_angle) sin = -sin;
  const float x1 = to_float(row[first]), x2 = to_float(row[second]);
  return to_float(from_float<T>(d == first ? x1 * cos - x2 * sin : x1 * sin + x2 * cos));
}

template <class T, Mutation mutation>
__global__ void attention_forward(Problem p, RopeTables rope,
                                  const T* q,  // [B, H, Nq, D]
                                  const T* k,  // [B, Hkv, Nk, D]
                                  const T* v,  // [B, Hkv, Nk, D]
                                  T* o,        // [B, H, Nq, D]
                                  float* lse)  // [B, H, Nq]
{
  __shared__ float k_smem[Bc][max_head_dim + 1];
  __shared__ T v_smem[Bc][max_head_dim];
  __shared__ float q_smem[rows][max_head_dim + 1];
  __shared__ float l_smem[rows];
  const int tiles = (p.seq_q + rows - 1) / rows;
  const int head = blockIdx.x / tiles, i = int(blockIdx.x % tiles) * rows + int(threadIdx.x);
  const int d0 = int(threadIdx.y) * p.head_dim / quarters;
  int kv_head = p.kv_head(head);
  if (mutation == Mutation::wrong_kv_head) kv_head = head / p.heads * p.kv_heads + head % p.heads % p.kv_heads;
  const T* q_row = q + (int64_t(head) * p.seq_q + i) * p.head_dim;
  const int64_t kv_start = int64_t(kv_head) * p.seq_k * p.head_dim;

  int visible = p.visible_keys(i);
  if (mutation == Mutation::mask_off_by_one && p.mask == Mask::causal && visible > 1) --visible;
  if (mutation == Mutation::mask_top_left && p.mask == Mask::causal) visible = min(i + 1, p.seq_k);
  // The block's keys end here: beyond its last row's, none of its rows sees any.
  const int i0 = i - int(threadIdx.x), seen_by_all = p.visible_keys(i0);
  int end = p.visible_keys(i0 + rows - 1);
  if (mutation == Mutation::stop_one_tile_short && p.mask == Mask::causal) end = (end - 1) / Bc * Bc;
  if (mutation == Mutation::stop_top_left && p.mask == Mask::causal) end = min(i0 + rows, p.seq_k);
  if (mutation == Mutation::stop_at_first_row) end = seen_by_all;
  if (i >= p.seq_q) visible = 0;
  if (mutation == Mutation::dropped_last_key) visible = min(visible, p.seq_k - 1);
  if (mutation == Mutation::dropped_tail) visible = min(visible, p.seq_k / Bc * Bc);
  const float scale = mutation == Mutation::wrong_scale ? 1.0f / p.head_dim : p.scale;

  const int position = mutation == Mutation::rope_query_from_zero ? i : p.query_position(i);
  for (int d = d0; d < d0 + p.head_dim / quarters && i < p.seq_q; ++d)
    q_smem[threadIdx.x][d] = mutation == Mutation::rope_keys_only
                                 ? to_float(q_row[d])
                                 : element<T, mutation>(p, rope, head, q_row, d, position);
  __syncthreads();  // the rows of Q are complete

  float o_reg[max_head_dim / quarters] = {};
  float m = mutation == Mutation::no_max ? 0 : -INFINITY, l = 0;
  for (int j0 = 0; j0 < end; j0 += Bc) {
    if (mutation != Mutation::missing_reuse_barrier) __syncthreads();  // everyone is done with the previous tile
    for (int n = threadIdx.y * rows + threadIdx.x; n < Bc * p.head_dim; n += rows * quarters) {
      const int j = n / p.head_dim, d = n % p.head_dim;
      const int64_t from = kv_start + int64_t(j0) * p.head_dim + n;
      const int position = mutation == Mutation::rope_position_in_tile ? j : j0 + j;
      k_smem[j][d] = j0 + j < p.seq_k ? element<T, mutation>(p, rope, kv_head, k + from - d, d, position) : 0;
      v_smem[j][d] = j0 + j < p.seq_k ? v[from] : from_float<T>(0);
    }
    if (mutation != Mutation::missing_barrier) __syncthreads();  // the tile is complete
    const bool unmasked = mutation == Mutation::diagonal_unmasked && p.mask == Mask::causal && j0 < seen_by_all;
    for (int j = 0; j < Bc && j0 + j < (unmasked ? p.seq_k : visible); ++j) {
      float s = 0;
      for (int d = 0; d < p.head_dim; ++d) s += q_smem[threadIdx.x][d] * k_smem[j][d];
      s *= scale;
      if (mutation == Mutation::mean_of_v) s = 0;
      const float m_new = mutation == Mutation::no_max ? 0 : fmaxf(m, s);
      const float correction = mutation == Mutation::no_rescale ? 1 : expf(m - m_new);
      const float weight = expf(s - m_new);
      m = m_new;
      l *= correction;
      if (mutation != Mutation::sum_in_any_order || j % quarters == int(threadIdx.y)) l += weight;
      const float factor = mutation == Mutation::small_weights ? to_float(from_float<T>(weight / 256)) * 256 : weight;
      for (int d = 0; d < p.head_dim / quarters; ++d) o_reg[d] = o_reg[d] * correction + factor * to_float(v_smem[j][d0 + d]);
    }
  }
  if (mutation == Mutation::sum_in_any_order) {
    if (threadIdx.y == 0) l_smem[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&l_smem[threadIdx.x], l);
    __syncthreads();
    l = l_smem[threadIdx.x];
  }
  if (i >= p.seq_q && mutation != Mutation::writes_past_end) return;
  const bool empty = l == 0 && mutation != Mutation::nan_for_empty_rows;
  if (threadIdx.y == 0 && i < p.seq_q)
    lse[int64_t(head) * p.seq_q + i] =
        empty ? -INFINITY : mutation == Mutation::lse_in_log2 ? (m + logf(l)) * 1.44269504f : m + logf(l);
  T* o_row = o + (int64_t(head) * p.seq_q + i) * p.head_dim + d0;
  for (int d = 0; d < p.head_dim / quarters; ++d) o_row[d] = from_float<T>(empty ? 0 : o_reg[d] / l);
}

template <Mutation mutation>
attention::Forward make() {
  attention::Forward pass;
  pass.unsupported = attention::head_dim_not_64_or_128;
  pass.workspace_bytes = [](const Problem&) { return size_t(0); };
  pass.writes_lse = true;
  pass.run = [](const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
    const dim3 grid(unsigned(p.batch * p.heads * ((p.seq_q + rows - 1) / rows)));
    const auto run = [&]<class T>(T) {
      launch(attention_forward<T, mutation>, {grid, dim3(rows, quarters), 0, stream}, p, args.rope,
             static_cast<const T*>(args.q), static_cast<const T*>(args.k), static_cast<const T*>(args.v),
             static_cast<T*>(args.o), args.lse);
    };
    if (p.dtype == attention::DType::fp16) run(__half());
    else run(__nv_bfloat16());
  };
  return pass;
}

attention::Forward forward(Mutation mutation) {
  switch (mutation) {
    case Mutation::none: return make<Mutation::none>();
    case Mutation::no_rescale: return make<Mutation::no_rescale>();
    case Mutation::wrong_scale: return make<Mutation::wrong_scale>();
    case Mutation::dropped_tail: return make<Mutation::dropped_tail>();
    case Mutation::dropped_last_key: return make<Mutation::dropped_last_key>();
    case Mutation::mask_off_by_one: return make<Mutation::mask_off_by_one>();
    case Mutation::mask_top_left: return make<Mutation::mask_top_left>();
    case Mutation::stop_one_tile_short: return make<Mutation::stop_one_tile_short>();
    case Mutation::stop_top_left: return make<Mutation::stop_top_left>();
    case Mutation::stop_at_first_row: return make<Mutation::stop_at_first_row>();
    case Mutation::diagonal_unmasked: return make<Mutation::diagonal_unmasked>();
    case Mutation::mean_of_v: return make<Mutation::mean_of_v>();
    case Mutation::missing_barrier: return make<Mutation::missing_barrier>();
    case Mutation::missing_reuse_barrier: return make<Mutation::missing_reuse_barrier>();
    case Mutation::sum_in_any_order: return make<Mutation::sum_in_any_order>();
    case Mutation::wrong_kv_head: return make<Mutation::wrong_kv_head>();
    case Mutation::lse_in_log2: return make<Mutation::lse_in_log2>();
    case Mutation::no_max: return make<Mutation::no_max>();
    case Mutation::small_weights: return make<Mutation::small_weights>();
    case Mutation::nan_for_empty_rows: return make<Mutation::nan_for_empty_rows>();
    case Mutation::writes_past_end: return make<Mutation::writes_past_end>();
    case Mutation::rope_neighbours: return make<Mutation::rope_neighbours>();
    case Mutation::rope_table_by_head: return make<Mutation::rope_table_by_head>();
    case Mutation::rope_query_from_zero: return make<Mutation::rope_query_from_zero>();
    case Mutation::rope_no_negative_angle: return make<Mutation::rope_no_negative_angle>();
    case Mutation::rope_keys_only: return make<Mutation::rope_keys_only>();
    case Mutation::rope_position_in_tile: return make<Mutation::rope_position_in_tile>();
  }
  return {};
}

}  // namespace mutants
