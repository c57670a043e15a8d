// Chapter 07, rung 4, rows32: a warp owns 32 rows instead of 16.
//
//   row_stats  a few lanes per query: log2(e) LSE and delta = rowsum(dO o O), for the other two
//   dk_dv      a thread block owns 128 rows of K, of one kv head (64 at D = 128); Q and dO pass by in tiles of 32 rows
//              (64 at D = 128), of all query heads that read this kv head, one after the other
//   dq         a thread block owns 128 rows of Q, of one head; K and V pass by in tiles of 32 rows
//
// Four warps share a block's rows, 32 to a warp: two blocks b = 0, 1 of 16, the height of an mma (in dk_dv at D = 128
// one block, and 16 x 64 of S^T). For each tile that passes by:
//
//   dk_dv                                            dq
//   S^T = K Q^T             32 x 32 a warp           S = Q K^T             32 x 32 a warp
//   P^T = 2^(S^T - LSE)     LSE by column            P = 2^(S - LSE)       LSE by row
//   dV += P^T dO            P^T from registers
//   dP^T = V dO^T                                    dP = dO V^T
//   dS^T = P^T o (dP^T - delta)                      dS = P o (dP - delta)
//   dK += dS^T Q            dS^T from registers      dQ += dS K            dS from registers
//
// What changed since 3_mma: `blocks` is 2. A fragment of what passes by serves two mma, one for each block of the
// warp's rows, as in chapter 06, 4_rows32. The gradients of twice the rows take twice the registers, so S and dP have
// half the columns: tiles of 32 rows pass by. `blocks` is an argument of the kernels now: at D = 128 dK and dV of 32
// rows would be 256 registers, more than a thread can have, and dk_dv keeps its 16 rows there; dq, with one gradient,
// has 32.
//
// Expected limit: shared memory still, and most of all in dk_dv at D = 128.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/backward_tile.h"
#include "device/math.h"
#include "device/swizzled_tile.h"
#include "device/watch.h"

namespace backward {
namespace {

using attention::BackwardArgs;
using attention::Problem;
using namespace backward_tile;
using namespace swizzled_tile;

constexpr int warps = 4, threads = 32 * warps;

// A warp owns blocks * 16 rows. At D = 128 two gradients of 32 rows are too much for its registers.
template <int D>
constexpr int dk_dv_blocks = D == 64 ? 2 : 1;
constexpr int dq_blocks = 2;
template <int blocks>
constexpr int own = 64 * blocks;  // rows that a thread block owns
template <int blocks>
constexpr int passing = 64 / blocks;  // rows of a tile that passes by

// The statistics of a head's query rows, in the workspace: two lines [2][padded], of LSE and of delta.
__host__ __device__ int padded(int rows) { return ceil_div(rows, 128) * 128; }

// D / 8 lanes per query row, 8 elements each.
template <class T, int D>
__global__ void row_stats(Problem p,
                          const T* o,        // [B, H, Nq, D]
                          const float* lse,  // [B, H, Nq]
                          const T* d_o,      // [B, H, Nq, D]
                          float* stats)      // [B, H, 2, padded]
{
  constexpr int lanes = D / 8;
  const unsigned row = (blockIdx.x * threads + threadIdx.x) / lanes, lane = threadIdx.x % lanes;
  const unsigned line = padded(p.seq_q), head = row / line, i = row % line;
  const size_t q_row = size_t(head) * p.seq_q + i, at = q_row * D + lane * 8;
  const RowStatistics of_row = row_statistics<D>(i < unsigned(p.seq_q), o + at, d_o + at, lse + q_row);
  if (lane == 0) {
    stats[size_t(head) * 2 * line + i] = of_row.lse;
    stats[(size_t(head) * 2 + 1) * line + i] = of_row.row_sum;
  }
}

// Two blocks per multiprocessor: 256 registers a thread, of which dK and dV take 128.
template <class T, int D, int blocks>
__global__ void __launch_bounds__(threads, 2) dk_dv(Problem p,
                                                    const T* q,          // [B, H, Nq, D]
                                                    const T* k,          // [B, Hkv, Nk, D]
                                                    const T* v,          // [B, Hkv, Nk, D]
                                                    const T* d_o,        // [B, H, Nq, D]
                                                    const float* stats,  // [B, H, 2, padded]
                                                    T* dk,               // [B, Hkv, Nk, D]
                                                    T* dv)               // [B, Hkv, Nk, D]
{
  constexpr int Bc = own<blocks>, Br = passing<blocks>;
  T* k_smem = dynamic_shared<T>();                                        // [Bc][D]
  T* v_smem = k_smem + Bc * D;                                            // [Bc][D]
  T* q_smem = v_smem + Bc * D;                                            // [2 stages][Q and dO][Br][D]
  float* stats_smem = reinterpret_cast<float*>(q_smem + 2 * 2 * Br * D);  // [2 stages][2][Br]

  const int kv_tiles = ceil_div(p.seq_k, Bc);
  const int kv_head = blockIdx.x / kv_tiles, j0 = blockIdx.x % kv_tiles * Bc;
  const int group = p.heads / p.kv_heads;  // query heads kv_head * group and up, over the batch, read this kv head
  const int end = (kv_head + 1) * group;
  const int warp_row = threadIdx.x / 32 * 16 * blocks;
  const size_t kv_row = size_t(kv_head) * p.seq_k + j0;

  const auto copy_stage = [&](int stage, int head, int i0) {
    const size_t row = size_t(head) * p.seq_q + i0;
    copy_tile<Br, D, threads>(q_smem + stage * 2 * Br * D, q + row * D, p.seq_q - i0);
    copy_tile<Br, D, threads>(q_smem + (stage * 2 + 1) * Br * D, d_o + row * D, p.seq_q - i0);
    if (const int line = threadIdx.x / (Br / 4), i = threadIdx.x % (Br / 4) * 4; line < 2)
      cp_async_16(stats_smem + (stage * 2 + line) * Br + i,
                  stats + (unsigned(head) * 2 + line) * padded(p.seq_q) + i0 + i);
  };
  copy_tile<Bc, D, threads>(k_smem, k + kv_row * D, p.seq_k - j0);
  copy_tile<Bc, D, threads>(v_smem, v + kv_row * D, p.seq_k - j0);
  copy_stage(0, kv_head * group, 0);
  cp_async_commit();

  float dk_reg[blocks][D / 8][4] = {}, dv_reg[blocks][D / 8][4] = {};
  const Watched keys = {int64_t(kv_row) + warp_row, 0, p.seq_k - j0 - warp_row, D};
#pragma unroll 1
  for (int stage = 0, head = kv_head * group, i0 = 0; head < end; stage ^= 1) {
    const bool last_of_head = i0 + Br >= p.seq_q;
    const int next_head = last_of_head ? head + 1 : head, next_i0 = last_of_head ? 0 : i0 + Br;
    cp_async_wait<0>();
    __syncthreads();  // this stage (and K and V) is in shared memory, and everyone is done with the stage before
    if (next_head < end) copy_stage(stage ^ 1, next_head, next_i0);
    cp_async_commit();
    const T* q_tile = q_smem + stage * 2 * Br * D;
    const T* do_tile = q_tile + Br * D;
    const float* lse = stats_smem + stage * 2 * Br;  // [Br]
    const float* row_sum = lse + Br;                 // [Br]

    float p_reg[blocks][Br / 8][4];      // S^T, then P^T
    float ds_reg[blocks][Br / 8][4];     // dP^T, then dS^T
    uint32_t x_reg[blocks][Br / 16][4];  // P^T, then dS^T, as A fragments
    watch_step("S = Q K^T, P = exp(S - LSE)");
    multiply_by_transpose<Bc, Br, D, Br>(p_reg, k_smem + warp_row * page_row, q_tile);
    make_p<Br>(p_reg, p.scale, lse, [&](int i) { return p.visible_keys(i0 + i) - j0 - warp_row; });
    const Watched pairs = {int64_t(head) * p.seq_q + i0, j0 + warp_row, p.seq_q - i0, p.seq_k - j0 - warp_row};
    watch_transpose("P", pairs, p_reg, 1 / p_factor);
    round_fragments<T, Br>(x_reg, p_reg);
    watch_step("dV += P^T dO");
    add_product<Br, D, Br>(dv_reg, x_reg, do_tile);

    watch_step("dP = dO V^T, dS = P (dP - delta)");
    multiply_by_transpose<Bc, Br, D, Br>(ds_reg, v_smem + warp_row * page_row, do_tile);
    watch_transpose("dP", pairs, ds_reg);
    make_ds<Br>(ds_reg, fragments_of(p_reg), row_sum);
    watch_transpose("dS", pairs, ds_reg);
    round_fragments<T, Br>(x_reg, ds_reg);
    watch_step("dK += dS^T Q");
    add_product<Br, D, Br>(dk_reg, x_reg, q_tile);
    watch("dV", keys, dv_reg, 1 / p_factor);
    watch("dK", keys, dk_reg, p.scale);
    head = next_head;
    i0 = next_i0;
  }
  const int j = j0 + warp_row;
  const size_t to = (size_t(kv_head) * p.seq_k + j) * D;
  __syncwarp();  // all lanes are done with the warp's rows of K and V
  watch_step("dK and dV leave");
  store_rows<Bc, D>(dk + to, k_smem + warp_row * page_row, dk_reg, p.scale, p.seq_k - j);
  store_rows<Bc, D>(dv + to, v_smem + warp_row * page_row, dv_reg, 1 / p_factor, p.seq_k - j);
}

template <class T, int D, int blocks>
__global__ void __launch_bounds__(threads, 2) dq(Problem p,
                                                 const T* q,          // [B, H, Nq, D]
                                                 const T* k,          // [B, Hkv, Nk, D]
                                                 const T* v,          // [B, Hkv, Nk, D]
                                                 const T* d_o,        // [B, H, Nq, D]
                                                 const float* stats,  // [B, H, 2, padded]
                                                 T* dq)               // [B, H, Nq, D]
{
  constexpr int Br = own<blocks>, Bc = passing<blocks>;
  T* q_smem = dynamic_shared<T>();                                         // [Br][D]
  T* do_smem = q_smem + Br * D;                                            // [Br][D]
  T* kv_smem = do_smem + Br * D;                                           // [2 stages][K and V][Bc][D]
  float* stats_smem = reinterpret_cast<float*>(kv_smem + 2 * 2 * Bc * D);  // [2][Br]

  const int q_tiles = ceil_div(p.seq_q, Br);
  const int head = blockIdx.x / q_tiles, i0 = blockIdx.x % q_tiles * Br;
  const int warp_row = threadIdx.x / 32 * 16 * blocks, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const size_t q_row = size_t(head) * p.seq_q + i0, kv_row = size_t(p.kv_head(head)) * p.seq_k;
  const float scale_log2 = p.scale * log2_e;

  const auto copy_stage = [&](int j0) {
    copy_tile<Bc, D, threads>(kv_smem + j0 / Bc % 2 * 2 * Bc * D, k + (kv_row + j0) * D, p.seq_k - j0);
    copy_tile<Bc, D, threads>(kv_smem + (j0 / Bc % 2 * 2 + 1) * Bc * D, v + (kv_row + j0) * D, p.seq_k - j0);
  };
  copy_tile<Br, D, threads>(q_smem, q + q_row * D, p.seq_q - i0);
  copy_tile<Br, D, threads>(do_smem, d_o + q_row * D, p.seq_q - i0);
  if (const int line = threadIdx.x / (Br / 4), i = threadIdx.x % (Br / 4) * 4; line < 2)
    cp_async_16(stats_smem + line * Br + i, stats + (unsigned(head) * 2 + line) * padded(p.seq_q) + i0 + i);
  copy_stage(0);
  cp_async_commit();

  float dq_reg[blocks][D / 8][4] = {};
  const Watched queries = {int64_t(q_row) + warp_row, 0, p.seq_q - i0 - warp_row, D};
#pragma unroll 1
  for (int j0 = 0; j0 < p.seq_k; j0 += Bc) {
    cp_async_wait<0>();
    __syncthreads();  // this stage (and Q and dO) is in shared memory, and everyone is done with the stage before
    if (j0 + Bc < p.seq_k) copy_stage(j0 + Bc);
    cp_async_commit();
    const T* k_tile = kv_smem + j0 / Bc % 2 * 2 * Bc * D;
    const T* v_tile = k_tile + Bc * D;

    float p_reg[blocks][Bc / 8][4];      // S, then P
    float ds_reg[blocks][Bc / 8][4];     // dP, then dS
    uint32_t x_reg[blocks][Bc / 16][4];  // dS, as A fragments
    watch_step("P = exp(S - LSE), dS = P (dP - delta)");
    multiply_by_transpose<Br, Bc, D, Bc>(p_reg, q_smem + warp_row * page_row, k_tile);
    multiply_by_transpose<Br, Bc, D, Bc>(ds_reg, do_smem + warp_row * page_row, v_tile);
    const Watched pairs = {queries.row, j0, queries.rows, p.seq_k - j0};
    watch("dP", pairs, ds_reg);
    const bool masked = j0 + Bc > p.visible_keys(i0);  // of the block's rows, the first sees the fewest keys
#pragma unroll
    for (int b = 0; b < blocks; b++)
      for (int h = 0; h < 2; h++) {
        const int i = warp_row + 16 * b + 8 * h + g, visible = p.visible_keys(i0 + i) - j0;
        const float lse = stats_smem[i], row_sum = stats_smem[Br + i];
        for (int n = 0; n < Bc / 8; n++)
          for (int r = 2 * h; r < 2 * h + 2; r++) {
            float x = fmaf(p_reg[b][n][r], scale_log2, -lse);
            if (masked && 8 * n + 2 * t + r % 2 >= visible) x = -INFINITY;
            watch_one("P", pairs, b, n, r, exp2_approx(x) / p_factor);
            ds_reg[b][n][r] = exp2_approx(x) * fmaf(ds_reg[b][n][r], 1 / p_factor, -row_sum);
          }
      }
    watch("dS", pairs, ds_reg);
    round_fragments<T, Bc>(x_reg, ds_reg);
    watch_step("dQ += dS K");
    add_product_rounded<Bc, D, Bc>(dq_reg, x_reg, k_tile);
    watch("dQ", queries, dq_reg, p.scale);
  }
  __syncwarp();  // all lanes are done with the warp's rows of Q
  const int i = i0 + warp_row;
  const size_t to = (size_t(head) * p.seq_q + i) * D;
  watch_step("dQ leaves");
  store_rows<Br, D>(dq + to, q_smem + warp_row * page_row, dq_reg, p.scale, p.seq_q - i);
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o, d_o, dq_out, dk, dv] = attention::tensors_of<T>(args);
    float* stats = static_cast<float*>(args.workspace);
    constexpr int key_blocks = dk_dv_blocks<D>, Br = own<dq_blocks>, Bc = own<key_blocks>;
    const unsigned heads = unsigned(p.batch) * p.heads, kv_heads = unsigned(p.batch) * p.kv_heads;
    const unsigned rows = heads * padded(p.seq_q), kv_blocks = kv_heads * ceil_div(p.seq_k, Bc);
    const size_t dq_shared = (2 * Br + 4 * passing<dq_blocks>)*D * sizeof(T) + 2 * Br * sizeof(float);
    const size_t dk_dv_shared =
        (2 * Bc + 4 * passing<key_blocks>)*D * sizeof(T) + 2 * 2 * passing<key_blocks> * sizeof(float);

    launch(row_stats<T, D>, {rows * (D / 8) / threads, threads, 0, stream}, p, o, args.lse, d_o, stats);
    launch(dk_dv<T, D, key_blocks>, {kv_blocks, threads, dk_dv_shared, stream}, p, q, k, v, d_o, stats, dk, dv);
    launch(dq<T, D, dq_blocks>, {rows / Br, threads, dq_shared, stream}, p, q, k, v, d_o, stats, dq_out);
  });
}

size_t workspace_bytes(const Problem& p) { return size_t(p.batch) * p.heads * 2 * padded(p.seq_q) * sizeof(float); }

constexpr attention::Backward unpadded = {attention::head_dim_not_8_to_128, workspace_bytes, run};

}  // namespace

extern const attention::Rung rows32;
constinit const attention::Rung rows32 = {.name = "rows32",
                                          .idea = "32 rows a warp: every fragment that passes by serves two products",
                                          .backward = attention::padded<unpadded>};

}  // namespace backward
