// Chapter 08, head dims above 128, backward: one gradient a kernel.
//
//   row_stats  a warp per query row: log2(e) LSE and delta = rowsum(dO o O), for the others
//   of_keys    dV, and once more for dK: a thread block owns 64 rows of K (and V); Q and dO pass by in tiles of 16
//              rows, of all query heads that read this kv head, in each from the diagonal on
//   of_queries dQ: a thread block owns 64 rows of Q and dO; K and V pass by in tiles of 16 rows, up to the diagonal
//
// Four warps share a block's rows, 16 to a warp, the height of an mma. For each tile that passes by:
//
//   of_keys, dV              of_keys, dK                    of_queries
//   S^T = K Q^T              S^T = K Q^T                    S = Q K^T
//   P^T = 2^(S^T - LSE)      P^T = 2^(S^T - LSE)            P = 2^(S - LSE)
//                            dP^T = V dO^T                  dP = dO V^T
//                            dS^T = P^T o (dP^T - delta)    dS = P o (dP - delta)
//   dV += P^T dO             dK += dS^T Q                   dQ += dS K
//
// What differs from 07's 3_mma, of which these are the kernels: at D = 256 one gradient of 16 rows takes the 128
// registers that two take at D = 128. So each gradient has a kernel of its own, and S is computed three times
// and dP twice: eight products where the equations have five. What the mask hides is left out, as in this chapter's
// others. Every gradient has one owner, so the result is the same bits in every run.
//
// Tensors lie as their strides say, for chapter 12, which has no kernels of its own for these head dims.
//
// Expected limit: shared memory. Each fragment that is read from it serves only one mma.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/view.h"
#include "device/backward_tile.h"
#include "device/math.h"
#include "device/swizzled_tile.h"
#include "device/watch.h"

namespace causal_earlystop {
namespace {

using attention::BackwardArgs;
using attention::Problem;
using attention::View;
using namespace backward_tile;
using namespace swizzled_tile;

constexpr int D = 256;
constexpr int warps = 4, threads = 32 * warps;
constexpr int own = 16 * warps, passing = 16;  // rows; 96 KB and the statistics: two thread blocks per multiprocessor
constexpr size_t shared_bytes = (2 * own + 4 * passing) * D * sizeof(uint16_t) + 2 * own * sizeof(float);

enum class Gradient { dv, dk };

// The statistics of a head's query rows, in the workspace: two lines [2][padded], of LSE and of delta.
__host__ __device__ int padded(int rows) { return ceil_div(rows, own) * own; }

// D / 8 lanes, a warp, per query row, 8 elements each.
template <class T>
__global__ void row_stats(Problem p,
                          View<const T> o,    // [B, H, Nq, D]
                          const float* lse,   // [B, H, Nq]
                          View<const T> d_o,  // [B, H, Nq, D]
                          float* stats)       // [B, H, 2, padded]
{
  const unsigned row = blockIdx.x * warps + threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned line = padded(p.seq_q), head = row / line, i = row % line;
  const size_t q_row = size_t(head) * p.seq_q + i;
  const RowStatistics of_row = row_statistics<D>(i < unsigned(p.seq_q), o.at_row(o.of_head(head, p.heads) + lane, i),
                                                 d_o.at_row(d_o.of_head(head, p.heads) + lane, i), lse + q_row);
  if (lane == 0) {
    stats[size_t(head) * 2 * line + i] = of_row.lse;
    stats[(size_t(head) * 2 + 1) * line + i] = of_row.row_sum;
  }
}

template <class T, Gradient gradient>
__global__ void __launch_bounds__(threads, 2) of_keys(Problem p,
                                                      View<const T> q,     // [B, H, Nq, D]
                                                      View<const T> k,     // [B, Hkv, Nk, D]
                                                      View<const T> v,     // [B, Hkv, Nk, D]
                                                      View<const T> d_o,   // [B, H, Nq, D]
                                                      const float* stats,  // [B, H, 2, padded]
                                                      View<T> out)         // dV or dK [B, Hkv, Nk, D]
{
  constexpr int Bc = own, Br = passing;
  T* k_smem = dynamic_shared<T>();                                        // [Bc][D]
  T* v_smem = k_smem + Bc * D;                                            // [Bc][D]
  T* q_smem = v_smem + Bc * D;                                            // [2 stages][Q and dO][Br][D]
  float* stats_smem = reinterpret_cast<float*>(q_smem + 2 * 2 * Br * D);  // [2 stages][2][Br]

  const int kv_heads = p.batch * p.kv_heads, group = p.heads / p.kv_heads;
  const int kv_head = blockIdx.x % kv_heads, j0 = blockIdx.x / kv_heads * Bc;  // the first keys of all heads first
  const int start = p.first_query(j0) / Br * Br, end = (kv_head + 1) * group;  // the first row; after the last head
  const int warp_row = threadIdx.x / 32 * 16;
  const size_t kv_row = size_t(kv_head) * p.seq_k + j0;

  const auto copy_stage = [&](int stage, int head, int i0) {
    T* const to = q_smem + stage * 2 * Br * D;
    attention::copy_rows<Br, D, Br, threads>(to, q, q.of_head(head, p.heads), i0, p.seq_q);
    attention::copy_rows<Br, D, Br, threads>(to + Br * D, d_o, d_o.of_head(head, p.heads), i0, p.seq_q);
    if (const int line = threadIdx.x / (Br / 4), i = threadIdx.x % (Br / 4) * 4; line < 2)
      cp_async_16(stats_smem + (stage * 2 + line) * Br + i,
                  stats + (size_t(head) * 2 + line) * padded(p.seq_q) + i0 + i);
  };
  attention::copy_rows<Bc, D, Bc, threads>(k_smem, k, k.of_head(kv_head, p.kv_heads), j0, p.seq_k);
  if (gradient == Gradient::dk)
    attention::copy_rows<Bc, D, Bc, threads>(v_smem, v, v.of_head(kv_head, p.kv_heads), j0, p.seq_k);
  copy_stage(0, kv_head * group, start);  // the last query sees every key, so there is one
  cp_async_commit();

  float sum_reg[1][D / 8][4] = {};
#pragma unroll 1
  for (int stage = 0, head = kv_head * group, i0 = start; head < end; stage ^= 1) {
    const bool last_of_head = i0 + Br >= p.seq_q;
    const int next_head = last_of_head ? head + 1 : head, next_i0 = last_of_head ? start : i0 + Br;
    cp_async_wait<0>();
    __syncthreads();  // this stage (and K and V) is in shared memory, and everyone is done with the stage before
    if (next_head < end) copy_stage(stage ^ 1, next_head, next_i0);
    cp_async_commit();
    const T* q_tile = q_smem + stage * 2 * Br * D;
    const T* do_tile = q_tile + Br * D;
    const float* lse = stats_smem + stage * 2 * Br;  // [Br]
    const float* row_sum = lse + Br;                 // [Br]

    float p_reg[1][Br / 8][4];      // S^T, then P^T
    uint32_t x_reg[1][Br / 16][4];  // P^T or dS^T, as A fragments
    const Watched pairs = {int64_t(head) * p.seq_q + i0, j0 + warp_row, p.seq_q - i0, p.seq_k - j0 - warp_row};
    watch_step("S = Q K^T, P = exp(S - LSE)");
    multiply_by_transpose<Bc, Br, D, Br>(p_reg, k_smem + warp_row * page_row, q_tile);
    make_p<Br>(p_reg, p.scale, lse, [&](int i) { return p.visible_keys(i0 + i) - j0 - warp_row; });
    if constexpr (gradient == Gradient::dv) {
      watch_transpose("P", pairs, p_reg, 1 / p_factor);
      round_fragments<T, Br>(x_reg, p_reg);
      watch_step("dV += P^T dO");
      add_product<Br, D, Br>(sum_reg, x_reg, do_tile);
    } else {
      float ds_reg[1][Br / 8][4];  // dP^T, then dS^T
      watch_step("dP = dO V^T, dS = P (dP - delta)");
      multiply_by_transpose<Bc, Br, D, Br>(ds_reg, v_smem + warp_row * page_row, do_tile);
      watch_transpose("dP", pairs, ds_reg);
      make_ds<Br>(ds_reg, fragments_of(p_reg), row_sum);
      watch_transpose("dS", pairs, ds_reg);
      round_fragments<T, Br>(x_reg, ds_reg);
      watch_step("dK += dS^T Q");
      add_product<Br, D, Br>(sum_reg, x_reg, q_tile);
    }
    head = next_head;
    i0 = next_i0;
  }
  __syncwarp();  // all lanes are done with the warp's rows of K

  const int j = j0 + warp_row;
  const float factor = gradient == Gradient::dv ? 1 / p_factor : p.scale;
  watch(gradient == Gradient::dv ? "dV" : "dK", {int64_t(kv_row) + warp_row, 0, p.seq_k - j, D}, sum_reg, factor);
  store_rows<Bc, D>(out.at_row(out.of_head(kv_head, p.kv_heads), j), k_smem + warp_row * page_row, sum_reg, factor,
                    p.seq_k - j, out.stride());
}

template <class T>
__global__ void __launch_bounds__(threads, 2) of_queries(Problem p,
                                                         View<const T> q,     // [B, H, Nq, D]
                                                         View<const T> k,     // [B, Hkv, Nk, D]
                                                         View<const T> v,     // [B, Hkv, Nk, D]
                                                         View<const T> d_o,   // [B, H, Nq, D]
                                                         const float* stats,  // [B, H, 2, padded]
                                                         View<T> dq)          // [B, H, Nq, D]
{
  constexpr int Br = own, Bc = passing;
  T* q_smem = dynamic_shared<T>();                                         // [Br][D]
  T* do_smem = q_smem + Br * D;                                            // [Br][D]
  T* kv_smem = do_smem + Br * D;                                           // [2 stages][K and V][Bc][D]
  float* stats_smem = reinterpret_cast<float*>(kv_smem + 2 * 2 * Bc * D);  // [2][Br]

  const unsigned heads = p.batch * p.heads, row_tiles = ceil_div(p.seq_q, Br);
  const int head = blockIdx.x % heads, i0 = (row_tiles - 1 - blockIdx.x / heads) * Br;  // the last rows first
  const int keys = p.visible_keys(i0 + Br - 1);  // that any row of the block sees: the last one sees most
  const int warp_row = threadIdx.x / 32 * 16, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const size_t q_row = size_t(head) * p.seq_q + i0;
  const unsigned of_k = k.of_head(p.kv_head(head), p.kv_heads), of_v = v.of_head(p.kv_head(head), p.kv_heads);
  const float scale_log2 = p.scale * log2_e;

  const auto copy_stage = [&](int j0) {
    T* to = kv_smem + j0 / Bc % 2 * 2 * Bc * D;
    attention::copy_rows<Bc, D, Bc, threads>(to, k, of_k, j0, p.seq_k);
    attention::copy_rows<Bc, D, Bc, threads>(to + Bc * D, v, of_v, j0, p.seq_k);
  };
  attention::copy_rows<Br, D, Br, threads>(q_smem, q, q.of_head(head, p.heads), i0, p.seq_q);
  attention::copy_rows<Br, D, Br, threads>(do_smem, d_o, d_o.of_head(head, p.heads), i0, p.seq_q);
  if (const int line = threadIdx.x / (Br / 4), i = threadIdx.x % (Br / 4) * 4; line < 2)
    cp_async_16(stats_smem + line * Br + i, stats + (size_t(head) * 2 + line) * padded(p.seq_q) + i0 + i);
  if (keys > 0) copy_stage(0);
  cp_async_commit();

  float dq_reg[1][D / 8][4] = {};
  const Watched queries = {int64_t(q_row) + warp_row, 0, p.seq_q - i0 - warp_row, D};
#pragma unroll 1
  for (int j0 = 0; j0 < keys; j0 += Bc) {
    cp_async_wait<0>();
    __syncthreads();  // this stage (and Q and dO) is in shared memory, and everyone is done with the stage before
    if (j0 + Bc < keys) copy_stage(j0 + Bc);
    cp_async_commit();
    const T* k_tile = kv_smem + j0 / Bc % 2 * 2 * Bc * D;
    const T* v_tile = k_tile + Bc * D;

    float p_reg[1][Bc / 8][4];      // S
    float ds_reg[1][Bc / 8][4];     // dP, then dS
    uint32_t x_reg[1][Bc / 16][4];  // dS, as A fragments
    watch_step("P = exp(S - LSE), dS = P (dP - delta)");
    multiply_by_transpose<Br, Bc, D, Bc>(p_reg, q_smem + warp_row * page_row, k_tile);
    multiply_by_transpose<Br, Bc, D, Bc>(ds_reg, do_smem + warp_row * page_row, v_tile);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int i = warp_row + 8 * h + g, visible = p.visible_keys(i0 + i) - j0;
      const float lse = stats_smem[i], row_sum = stats_smem[Br + i];
      for (int n = 0; n < Bc / 8; n++)
        for (int r = 2 * h; r < 2 * h + 2; r++) {
          float x = fmaf(p_reg[0][n][r], scale_log2, -lse);
          if (8 * n + 2 * t + r % 2 >= visible) x = -INFINITY;
          ds_reg[0][n][r] = exp2_approx(x) * fmaf(ds_reg[0][n][r], 1 / p_factor, -row_sum);
        }
    }
    watch("dS", {queries.row, j0, queries.rows, p.seq_k - j0}, ds_reg);
    round_fragments<T, Bc>(x_reg, ds_reg);
    watch_step("dQ += dS K");
    add_product_rounded<Bc, D, Bc>(dq_reg, x_reg, k_tile);
    watch("dQ", queries, dq_reg, p.scale);
  }
  cp_async_wait<0>();  // no copy may outlive the thread block
  __syncthreads();     // all threads' copies of Q have arrived, also if there are no keys: dQ takes Q's place
  watch_step("dQ leaves");
  store_rows<Br, D>(dq.at_row(dq.of_head(head, p.heads), i0 + warp_row), q_smem + warp_row * page_row, dq_reg, p.scale,
                    p.seq_q - i0 - warp_row, dq.stride());
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype(p, [&]<class T>() {
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::views_of<T>(p, args);
    float* stats = static_cast<float*>(args.workspace);
    const unsigned rows = unsigned(p.batch) * p.heads * padded(p.seq_q);
    const unsigned kv_blocks = unsigned(p.batch) * p.kv_heads * ceil_div(p.seq_k, own);

    launch(row_stats<T>, {rows / warps, threads, 0, stream}, p, o, args.lse, d_o, stats);
    launch(of_keys<T, Gradient::dv>, {kv_blocks, threads, shared_bytes, stream}, p, q, k, v, d_o, stats, dv);
    launch(of_keys<T, Gradient::dk>, {kv_blocks, threads, shared_bytes, stream}, p, q, k, v, d_o, stats, dk);
    launch(of_queries<T>, {rows / own, threads, shared_bytes, stream}, p, q, k, v, d_o, stats, dq);
  });
}

size_t workspace_bytes(const Problem& p) { return size_t(p.batch) * p.heads * 2 * padded(p.seq_q) * sizeof(float); }

}  // namespace

extern const attention::Backward wide_backward;
constinit const attention::Backward wide_backward = {.unsupported = attention::head_dim_not_8_to_256,
                                                     .workspace_bytes = workspace_bytes,
                                                     .run = run,
                                                     .takes = attention::views};

}  // namespace causal_earlystop
