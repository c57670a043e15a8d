// One streaming-softmax kernel, chapter 05's idea without its speed, with a switch for every mistake. The mistake is an
// argument of the kernel, so that it is compiled once.
//
// A thread block owns 32 query rows, a thread one row and a quarter of the head dim of O. Keys and values pass through
// shared memory in tiles of 32.
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "device/numeric.h"
#include "tests/mutants/mutants.h"

namespace mutants {

using attention::ForwardArgs;
using attention::Mask;
using attention::Problem;
using attention::RopeTables;

constexpr int rows = 32;  // of a thread block; one warp for each quarter of the head dim
constexpr int quarters = 4;
constexpr int Bc = 32;  // keys in a tile
constexpr int max_head_dim = 128;

// Element d of a row of Q or K: as it is, or rotated and stored once more if the problem has RoPE.
template <class T>
__device__ float element(Mutation mutation, const Problem& p, const RopeTables& rope, int head,
                         const T* row,  // [D]
                         int d, int position, bool is_key) {
  if (!p.rope) return to_float(row[d]);
  const int half = p.head_dim / 2;
  const bool neighbours = mutation == Mutation::rope_neighbours;
  const int i = neighbours ? d / 2 : d % half;  // the pair: elements first and second
  const int first = neighbours ? 2 * i : i, second = neighbours ? 2 * i + 1 : i + half;
  int angle = abs(position);
  if (mutation == Mutation::rope_table_by_head) angle = (angle + head) % p.rope_rows();
  float cos = rope.cos[angle * half + i], sin = rope.sin[angle * half + i];
  if (mutation == Mutation::rope_own_key_angles && is_key) {
    const float theta = abs(position) * powf(10000, -2.0f * i / p.head_dim);
    cos = cosf(theta), sin = sinf(theta);
  }
  if (position < 0 && mutation != Mutation::rope_no_negative_angle) sin = -sin;
  const float x1 = to_float(row[first]), x2 = to_float(row[second]);
  return to_float(from_float<T>(d == first ? x1 * cos - x2 * sin : x1 * sin + x2 * cos));
}

// Whether the kernel takes the keys in two parts and merges them: where that is the mistake, and where there is none,
// so that all else about it is known to be right.
__device__ inline bool in_two_parts(Mutation mutation) {
  return mutation == Mutation::merge_without_lse || mutation == Mutation::part_twice ||
         mutation == Mutation::mask_from_part || mutation == Mutation::none;
}

template <class T>
__global__ void attention_forward(Mutation mutation, Problem p, RopeTables rope,
                                  const T* q,   // [B, H, Nq, D]
                                  const T* k,   // [B, Hkv, Nk, D]
                                  const T* v,   // [B, Hkv, Nk, D]
                                  T* o,         // [B, H, Nq, D]
                                  float* lse,   // [B, H, Nq]
                                  float* sums)  // [B, H, Nq], for one of the mistakes
{
  __shared__ float k_smem[Bc][max_head_dim + 1];
  __shared__ T v_smem[Bc][max_head_dim];
  __shared__ float q_smem[rows][max_head_dim + 1];
  __shared__ float l_smem[rows];
  const int tiles = (p.seq_q + rows - 1) / rows;
  const int head = blockIdx.x / tiles;
  int i = int(blockIdx.x % tiles) * rows + int(threadIdx.x);
  if (mutation == Mutation::rows_in_a_byte) i %= 256;
  if (mutation == Mutation::rows_in_ten_bits) i %= 1024;
  const int d0 = int(threadIdx.y) * p.head_dim / quarters;
  const int D =
      mutation == Mutation::head_dim_in_sixteens ? p.head_dim / 16 * 16 : p.head_dim;  // that S is summed over
  int kv_head = p.kv_head(mutation == Mutation::heads_modulo_64 ? head % 64 : head);
  if (mutation == Mutation::wrong_kv_head) kv_head = head / p.heads * p.kv_heads + head % p.heads % p.kv_heads;
  if (mutation == Mutation::group_in_bits) {
    const int shift = 31 - __clz(p.heads / p.kv_heads);
    kv_head = head / p.heads * p.kv_heads + min((head % p.heads) >> shift, p.kv_heads - 1);
  }
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
  if (mutation == Mutation::nearly_full_tile && visible == p.seq_k && p.seq_k % Bc == Bc - 1) ++visible;
  if (mutation == Mutation::dropped_tail) visible = min(visible, p.seq_k / Bc * Bc);
  const float scale = mutation == Mutation::wrong_scale ? 1.0f / p.head_dim
                      : mutation == Mutation::own_scale ? rsqrtf(float(p.head_dim))
                                                        : p.scale;

  const int position = mutation == Mutation::rope_query_from_zero ? i : p.query_position(i);
  for (int d = d0; d < d0 + p.head_dim / quarters && i < p.seq_q; ++d)
    q_smem[threadIdx.x][d] = mutation == Mutation::rope_keys_only
                                 ? to_float(q_row[d])
                                 : element(mutation, p, rope, head, q_row, d, position, false);
  __syncthreads();  // the rows of Q are complete

  float o_reg[max_head_dim / quarters] = {};
  float m = mutation == Mutation::no_max || mutation == Mutation::low_first_max ? 0 : -INFINITY, l = 0;
  const int cut = in_two_parts(mutation) ? end / Bc / 2 * Bc : 0;  // the second part's first key; 0: one part
  float first_o[max_head_dim / quarters] = {}, first_m = -INFINITY, first_l = 0;
  for (int j0 = 0; j0 < end; j0 += Bc) {
    if (j0 == cut && cut > 0) {
      first_m = m, first_l = l, m = -INFINITY, l = 0;
      for (int d = 0; d < p.head_dim / quarters; ++d) first_o[d] = o_reg[d], o_reg[d] = 0;
    }
    if (mutation != Mutation::missing_reuse_barrier) __syncthreads();  // everyone is done with the previous tile
    for (int n = threadIdx.y * rows + threadIdx.x; n < Bc * p.head_dim; n += rows * quarters) {
      const int j = n / p.head_dim, d = n % p.head_dim;
      const int64_t from = kv_start + int64_t(j0) * p.head_dim + n;
      const int position = mutation == Mutation::rope_position_in_tile ? j : j0 + j;
      k_smem[j][d] = j0 + j < p.seq_k ? element(mutation, p, rope, kv_head, k + from - d, d, position, true) : 0;
      v_smem[j][d] = j0 + j < p.seq_k ? v[from] : from_float<T>(0);
    }
    if (mutation != Mutation::missing_barrier) __syncthreads();  // the tile is complete
    const bool unmasked = mutation == Mutation::diagonal_unmasked && p.mask == Mask::causal && j0 < seen_by_all;
    int end_of_row = unmasked || (mutation == Mutation::added_mask && i < p.seq_q) ? p.seq_k : visible;
    if (mutation == Mutation::mask_from_part && i < p.seq_q && j0 >= cut) end_of_row = min(visible + cut, p.seq_k);
    for (int j = 0; j < Bc && j0 + j < end_of_row; ++j) {
      float s = 0;
      for (int d = 0; d < D; ++d) s += q_smem[threadIdx.x][d] * k_smem[j][d];
      s *= scale;
      if (mutation == Mutation::added_mask && j0 + j >= visible) s += -INFINITY;
      if (mutation == Mutation::mean_of_v) s = 0;
      const float m_new = mutation == Mutation::no_max ? 0 : fmaxf(m, s);
      const float m_safe = m_new == -INFINITY && mutation != Mutation::no_score_yet ? 0 : m_new;
      const float correction = mutation == Mutation::no_rescale ? 1 : expf(m - m_safe);
      const float weight = expf(s - m_safe);
      m = m_new;
      l *= correction;
      if (mutation != Mutation::sum_in_any_order || j % quarters == int(threadIdx.y)) l += weight;
      const float factor = mutation == Mutation::small_weights ? to_float(from_float<T>(weight / 256)) * 256 : weight;
      for (int d = 0; d < p.head_dim / quarters; ++d)
        o_reg[d] = o_reg[d] * correction + factor * to_float(v_smem[j][d0 + d]);
    }
  }
  if (cut > 0) {
    const float top = fmaxf(first_m, m), own_weight = l == 0 ? 0 : expf(m - top);
    const float first_weight = first_l == 0 ? 0 : expf(first_m - top) * (mutation == Mutation::part_twice ? 2 : 1);
    const float sum = first_weight * first_l + own_weight * l;
    for (int d = 0; d < p.head_dim / quarters; ++d)
      o_reg[d] = mutation == Mutation::merge_without_lse && first_l > 0 && l > 0
                     ? (first_o[d] / first_l + o_reg[d] / l) / 2 * sum
                     : first_weight * first_o[d] + own_weight * o_reg[d];
    m = top, l = sum;
  }
  if (mutation == Mutation::sum_in_any_order) {
    if (threadIdx.y == 0) l_smem[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&l_smem[threadIdx.x], l);
    __syncthreads();
    l = l_smem[threadIdx.x];
  }
  if (mutation == Mutation::barriers_crossed) {
    if (threadIdx.y > 0) __syncthreads();
    __syncthreads();
  }
  if (mutation == Mutation::wrong_warp_mask) __syncwarp(0x0000ffff);
  if (mutation == Mutation::harmless_race) {
    if (threadIdx.y == 0) l_smem[threadIdx.x] = l;
    l = fmaxf(l, l_smem[threadIdx.x]);  // the same, or NaN, which fmaxf passes over
  }
  if (i >= p.seq_q && mutation != Mutation::writes_past_end) return;
  if (mutation == Mutation::missing_global_barrier) {
    if (threadIdx.y == 0) sums[int64_t(head) * p.seq_q + i] = l;
    l = sums[int64_t(head) * p.seq_q + i];
  }
  // Never true, but neither compiler nor engine knows.
  if (mutation == Mutation::reads_past_end && i == p.seq_q - 1 && to_float(q_row[p.head_dim + d0]) == 1e30f) l = 0;
  if (mutation == Mutation::reads_before_writing && sums[int64_t(head) * p.seq_q + i] == 1e30f) l = 0;
  if (mutation == Mutation::writes_before_start && head == 0 && i == 0 && threadIdx.y == 0) lse[-1] = 0;
  const bool empty =
      (l == 0 && mutation != Mutation::nan_for_empty_rows) || (mutation == Mutation::nan_counts_as_empty && !(l > 0));
  if (threadIdx.y == 0 && i < p.seq_q)
    lse[int64_t(head) * p.seq_q + i] = empty                               ? -INFINITY
                                       : mutation == Mutation::lse_in_log2 ? (m + logf(l)) * 1.44269504f
                                                                           : m + logf(l);
  T* o_row = o + (int64_t(head) * p.seq_q + i) * p.head_dim + d0;
  for (int d = 0; d < p.head_dim / quarters; ++d) o_row[d] = from_float<T>(empty ? 0 : o_reg[d] / l);
}

bool little_shared_memory() {
  int device = 0, bytes = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return bytes < 100 * 1024;
}

// The mistake that the kernel makes, which may be another one where a block can have little shared memory.
Mutation on_this_device(Mutation mutation) {
  const bool little = little_shared_memory();
  switch (mutation) {
    case Mutation::little_memory_no_tail:
      return little ? Mutation::dropped_tail : Mutation::none;
    case Mutation::missing_global_barrier:
    case Mutation::sum_in_any_order:
      return little ? Mutation::none : mutation;
    default:
      return mutation;
  }
}

template <Mutation mutation>
attention::Forward make() {
  attention::Forward pass;
  pass.unsupported = [](const Problem& p) { return attention::head_dim_unsupported(p, 8, max_head_dim); };
  pass.workspace_bytes = [](const Problem& p) {
    const bool needed = mutation == Mutation::missing_global_barrier || mutation == Mutation::reads_before_writing;
    return needed ? p.lse_size() * sizeof(float) : 0;
  };
  pass.writes_lse = true;
  pass.deterministic = mutation != Mutation::missing_global_barrier;
  pass.run = [](const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
    const dim3 grid(unsigned(p.batch * p.heads * ((p.seq_q + rows - 1) / rows)));
    const auto run = [&]<class T>(T) {
      launch(attention_forward<T>,
             {grid, dim3(rows, quarters), 0, mutation == Mutation::default_stream ? nullptr : stream},
             on_this_device(mutation), p, args.rope, static_cast<const T*>(args.q), static_cast<const T*>(args.k),
             static_cast<const T*>(args.v), static_cast<T*>(args.o), args.lse, static_cast<float*>(args.workspace));
    };
    if (p.dtype == attention::DType::fp16)
      run(__half());
    else
      run(__nv_bfloat16());
  };
  return pass;
}

template <size_t... mutation>
auto make_all(std::index_sequence<mutation...>) {
  return std::array{make<Mutation(mutation)>()...};
}

attention::Forward forward(Mutation mutation) {
  static const auto forwards = make_all(std::make_index_sequence<size_t(Mutation::count)>());
  return forwards[size_t(mutation)];
}

}  // namespace mutants
