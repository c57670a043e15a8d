// Chapter 10, head dims above 128, backward: dK and dV in some thread blocks, dQ in others.
//
//   row_stats    a warp per query row: log2(e) LSE and D = rowsum(dO o O)
//   gradients    all other work, in thread blocks of two kinds, of which those with keys come first
//   sum_shares   adds up the shares of dK and dV, where there are several (attention/backward_shares.h)
//
// A block with keys owns 64 rows of K and V and its share of their gradients; Q and dO pass by in tiles of 64 rows, of
// its share of the query heads that read this kv head. At D = 256 a gradient of 64 rows takes 128 registers of each of
// a warpgroup's threads, so a consumer has room for one of them, where that of 21_shared has two:
//
//                          consumer 0                        consumer 1
//   1. start               S^T = K Q^T                       dP^T = V dO^T             of tile i + 1
//   2. start               dV += P^T dO                      dK += dS^T Q              of tile i
//   3. while 2 runs        P^T = 2^(S^T - LSE)               dS^T = P^T o (dP^T - D)   of tile i + 1
//
// P^T goes from one to the other through shared memory, in fp32: a thread reads what the thread in its place has
// written. A block with queries owns 128 rows of Q, dO and dQ, 64 to a consumer; K and V pass by:
//
//   1. S = Q K^T, dP = dO V^T
//   2. P = 2^(S - LSE) while dP is multiplied, dS = P o (dP - D)
//   3. dQ += dS K
//
// Every gradient has one owner, or shares that are added up in their order: no sum in memory has to wait for its turn,
// and the result is the same bits in every run. For that S and dP are computed twice: seven products where the
// equations have five.
//
// Expected limit: tensor cores, which have two fifths more to do than they should.
#include <cmath>
#include <cstdint>

#include "attention/backward_shares.h"
#include "attention/dispatch.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/dependent_launch.h"
#include "device/elect.h"
#include "device/math.h"
#include "device/mbarrier.h"
#include "device/ring.h"
#include "device/setmaxnreg.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/warpgroup_backward.h"
#include "device/watch.h"

namespace hopper {
namespace {

using attention::BackwardArgs;
using attention::KeyTile;
using attention::Problem;
using attention::Tile;
using namespace warpgroup_backward;

constexpr int consumers = 2, threads = warpgroup_threads * (consumers + 1);
constexpr int rows = wgmma_rows;  // of every tile: 64 keys, or queries

// 65536 registers are 168 for each of 384 threads, in multiples of 8: 24 + 2 * 240 = 3 * 168.
constexpr int producer_registers = 24, consumer_registers = 240;

constexpr int stats_threads = 256;  // of row_stats

template <int D_>
struct Shape {  // of gradients_of_keys
  static constexpr int D = D_, Br = rows, Bc = rows;
};

// This warp no longer needs the buffer that the mbarrier guards, or has filled it.
__device__ void arrive_warp(Mbarrier& mbarrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) mbarrier_arrive(&mbarrier);
}

// --- dK and dV ---

template <class T, int D>
struct KeysShared {
  T k[rows * D], v[rows * D];                // each tile in D / 64 pages of 128 bytes a row, swizzled
  T q[2][rows * D], d_o[2][rows * D];        // two tiles, as all that follows
  float4 p[2][rows / 8][warpgroup_threads];  // fragments of P^T
  float stats[2][2 * rows];                  // LSE, then D
  Mbarrier kv_full, full[2], empty[2], p_full[2], p_empty[2];
};

template <class T, int D>
__device__ void init(KeysShared<T, D>& smem) {
  mbarrier_init(&smem.kv_full, 1);
  for (int i = 0; i < 2; i++) {
    mbarrier_init(&smem.full[i], 1);
    mbarrier_init(&smem.empty[i], 4 * consumers);  // their warps
    mbarrier_init(&smem.p_full[i], 4);
    mbarrier_init(&smem.p_empty[i], 4);
  }
}

// Starts the copies of a block. One thread.
template <class T, int D>
__device__ __forceinline__ void load(KeysShared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const TensorMap& d_o_map, const float* stats, KeyTile work,
                                     int kv_head) {
  constexpr int stats_bytes = 2 * rows * sizeof(float);
  mbarrier_arrive_expect_tx(&smem.kv_full, 2 * rows * D * sizeof(T));
  tensor_load(smem.k, k_map, &smem.kv_full, 0, work.j0, 0, kv_head);
  tensor_load(smem.v, v_map, &smem.kv_full, 0, work.j0, 0, kv_head);
  Ring<2> ring;
#pragma unroll 1
  for (int head = work.first_head; head < work.first_head + work.heads; head++)
#pragma unroll 1
    for (int i = work.start; i < work.head_tiles; i++, ring.advance()) {
      mbarrier_wait(&smem.empty[ring.place], ring.parity ^ 1);
      Mbarrier* full = &smem.full[ring.place];
      mbarrier_arrive_expect_tx(full, 2 * rows * D * sizeof(T) + stats_bytes);
      tensor_load(smem.q[ring.place], q_map, full, 0, i * rows, 0, head);
      tensor_load(smem.d_o[ring.place], d_o_map, full, 0, i * rows, 0, head);
      bulk_load(smem.stats[ring.place], stats + (size_t(head) * work.head_tiles + i) * 2 * rows, stats_bytes, full);
    }
}

// A consumer's gradient of the block's 64 keys: dV if it makes P, else dK.
template <bool makes_p, class T, int D>
__device__ __forceinline__ void differentiate_keys(KeysShared<T, D>& smem, const Problem& p, KeyTile work, int shares,
                                                   float* parts, T* out) {
  const int warp_key = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0) * 16;  // the first of the warp's 16 keys
  const int thread = threadIdx.x % warpgroup_threads;
  T* const own_rows = makes_p ? smem.k : smem.v;
  const int head_tiles = work.head_tiles - work.start, tiles = head_tiles > 0 ? work.heads * head_tiles : 0;

  float x_reg[1][rows / 8][4], sum_reg[1][D / 8][4] = {};
  uint32_t x_half[1][rows / 16][4];  // P^T or dS^T, as A fragments
  Ring<2> ring;
  // P^T or dS^T of tile `i` in the place of S^T or dP^T
  const auto make = [&](int i) {
    const float* stats = smem.stats[ring.place];
    float4(*p_tile)[warpgroup_threads] = smem.p[ring.place];
    if constexpr (makes_p) {
      make_p<rows>(x_reg, p.scale, stats,
                   [&](int query) { return p.visible_keys(i * rows + query) - work.j0 - warp_key; });
      mbarrier_wait(&smem.p_empty[ring.place], ring.parity ^ 1);
#pragma unroll
      for (int n = 0; n < rows / 8; n++) p_tile[n][thread] = fragments_of(x_reg)(0, n);
      arrive_warp(smem.p_full[ring.place]);
    } else {
      mbarrier_wait(&smem.p_full[ring.place], ring.parity);
      make_ds<rows>(
          x_reg, [&](int, int n) { return p_tile[n][thread]; }, stats + rows);
      arrive_warp(smem.p_empty[ring.place]);
    }
  };
  const auto start_x = [&] {
    start_product<rows, D, rows>(x_reg, own_rows, makes_p ? smem.q[ring.place] : smem.d_o[ring.place]);
  };
  const auto start_gradient = [&](int place) {
    start_sum<D, rows>(sum_reg, x_half, makes_p ? smem.d_o[place] : smem.q[place]);
  };

  mbarrier_wait(&smem.kv_full, 0);
  if (tiles > 0) {
    mbarrier_wait(&smem.full[ring.place], ring.parity);
    wgmma_fence();
    start_x();
    wgmma_wait<0>(x_reg);
    make(work.start);
    swizzled_tile::round_fragments<T, rows>(x_half, x_reg);
    int i = work.start;
#pragma unroll 1
    for (int n = 1; n < tiles; n++) {
      const Ring<2> before = ring;
      ring.advance();
      i = i + 1 < work.head_tiles ? i + 1 : work.start;  // of the next head
      mbarrier_wait(&smem.full[ring.place], ring.parity);
      wgmma_fence();
      start_x();
      start_gradient(before.place);
      wgmma_wait<1>(x_reg);
      make(i);
      wgmma_wait<0>(sum_reg, x_half);
      arrive_warp(smem.empty[before.place]);
      swizzled_tile::round_fragments<T, rows>(x_half, x_reg);
    }
    wgmma_fence();
    start_gradient(ring.place);
    wgmma_wait<0>(sum_reg);
  }

  const float factor = makes_p ? 1 / p_factor : p.scale;
  const int rows_left = p.seq_k - work.j0 - warp_key;
  const size_t row = size_t(work.kv_head) * p.seq_k + work.j0 + warp_key;  // over all shares
  watch(makes_p ? "dV" : "dK", {int64_t(work.kv_head / shares) * p.seq_k + work.j0 + warp_key, 0, rows_left, D},
        sum_reg, factor);
  if (shares == 1)
    swizzled_tile::store_rows<rows, D>(out + row * D, own_rows + warp_key * page_row, sum_reg, factor, rows_left);
  else
    store_fp32<D>(parts + (makes_p ? 0 : size_t(p.batch) * p.kv_heads * shares * p.seq_k * D) + row * D, sum_reg,
                  factor, rows_left);
}

// --- dQ ---

template <class T, int D>
struct QueriesShared {
  static constexpr int v_places = D > 192 ? 1 : 2;
  T q[consumers][rows * D], d_o[consumers][rows * D];  // q later dQ
  T k[2][rows * D], v[v_places][rows * D];
  Mbarrier own_full, k_full[2], k_empty[2], v_full[v_places], v_empty[v_places];
};

template <class T, int D>
__device__ void init(QueriesShared<T, D>& smem) {
  mbarrier_init(&smem.own_full, 1);
  for (int i = 0; i < 2; i++) {
    mbarrier_init(&smem.k_full[i], 1);
    mbarrier_init(&smem.k_empty[i], 4 * consumers);  // their warps
  }
  for (int i = 0; i < smem.v_places; i++) {
    mbarrier_init(&smem.v_full[i], 1);
    mbarrier_init(&smem.v_empty[i], 4 * consumers);
  }
}

// Starts the copies of a block. One thread.
template <class T, int D>
__device__ __forceinline__ void load(QueriesShared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const TensorMap& d_o_map, const Problem& p, Tile tile) {
  constexpr int tile_bytes = rows * D * sizeof(T);
  mbarrier_arrive_expect_tx(&smem.own_full, 2 * consumers * tile_bytes);
  for (int consumer = 0; consumer < consumers; consumer++) {
    tensor_load(smem.q[consumer], q_map, &smem.own_full, 0, tile.i0 + consumer * rows, 0, tile.head);
    tensor_load(smem.d_o[consumer], d_o_map, &smem.own_full, 0, tile.i0 + consumer * rows, 0, tile.head);
  }
  const int tiles = attention::key_tiles<rows>(p, tile.i0 + consumers * rows - 1), kv_head = p.kv_head(tile.head);
  Ring<2> k;
  Ring<smem.v_places> v;
#pragma unroll 1
  for (int j = 0; j < tiles; j++, k.advance(), v.advance()) {
    mbarrier_wait(&smem.k_empty[k.place], k.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.k_full[k.place], tile_bytes);
    tensor_load(smem.k[k.place], k_map, &smem.k_full[k.place], 0, j * rows, 0, kv_head);
    mbarrier_wait(&smem.v_empty[v.place], v.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.v_full[v.place], tile_bytes);
    tensor_load(smem.v[v.place], v_map, &smem.v_full[v.place], 0, j * rows, 0, kv_head);
  }
}

// A consumer's 64 queries.
template <class T, int D>
__device__ __forceinline__ void differentiate_queries(QueriesShared<T, D>& smem, const Problem& p, Tile tile,
                                                      const float* stats, T* dq) {
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 queries
  const int first_row = tile.i0 + warp_row, tiles = attention::key_tiles<rows>(p, tile.i0 + consumers * rows - 1);
  T* const q_rows = smem.q[consumer];
  const float scale_log2 = p.scale * log2_e;

  float lse[2] = {}, row_sum[2] = {};  // of rows 8 h + g
  const float* of_tile = stats + (size_t(tile.head) * ceil_div(p.seq_q, rows) + first_row / rows) * 2 * rows;
  for (int h = 0; h < 2; h++)
    if (first_row + 8 * h + g < p.seq_q) {
      lse[h] = of_tile[first_row % rows + 8 * h + g];
      row_sum[h] = of_tile[rows + first_row % rows + 8 * h + g];
    }

  float p_reg[1][rows / 8][4], ds_reg[1][rows / 8][4], dq_reg[1][D / 8][4] = {};
  uint32_t ds_half[1][rows / 16][4];
  Ring<2> k;
  Ring<smem.v_places> v;
  mbarrier_wait(&smem.own_full, 0);
#pragma unroll 1
  for (int j = 0; j < tiles; j++, k.advance(), v.advance()) {
    // 1. S and dP
    mbarrier_wait(&smem.k_full[k.place], k.parity);
    mbarrier_wait(&smem.v_full[v.place], v.parity);
    wgmma_fence();
    start_product<rows, D, rows>(p_reg, q_rows, smem.k[k.place]);
    start_product<rows, D, rows>(ds_reg, smem.d_o[consumer], smem.v[v.place]);
    wgmma_wait<1>(p_reg);

    // 2. P and dS
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int visible = p.visible_keys(first_row + 8 * h + g) - j * rows - 2 * t;
#pragma unroll
      for (int n = 0; n < rows / 8; n++)
        for (int c = 0; c < 2; c++) {
          const float x = fmaf(p_reg[0][n][2 * h + c], scale_log2, -lse[h]);
          p_reg[0][n][2 * h + c] = exp2_approx(8 * n + c >= visible ? -INFINITY : x);
        }
    }
    wgmma_wait<0>(ds_reg);
    arrive_warp(smem.v_empty[v.place]);
#pragma unroll
    for (int n = 0; n < rows / 8; n++)
      for (int r = 0; r < 4; r++)
        ds_reg[0][n][r] = p_reg[0][n][r] * fmaf(ds_reg[0][n][r], 1 / p_factor, -row_sum[r / 2]);
    swizzled_tile::round_fragments<T, rows>(ds_half, ds_reg);

    // 3. dQ
    wgmma_fence();
    start_sum<D, rows>(dq_reg, ds_half, smem.k[k.place]);
    wgmma_wait<0>(dq_reg);
    arrive_warp(smem.k_empty[k.place]);
  }

  const size_t row = size_t(tile.head) * p.seq_q + first_row;
  watch("dQ", {int64_t(row), 0, p.seq_q - first_row, D}, dq_reg, p.scale);
  swizzled_tile::store_rows<rows, D>(dq + row * D, q_rows + warp_row % rows * page_row, dq_reg, p.scale,
                                     p.seq_q - first_row);
}

// --- the kernels ---

template <class T, int D>
union Shared {
  KeysShared<T, D> of_keys;
  QueriesShared<T, D> of_queries;
};

template <class T, int D>
__global__ void __launch_bounds__(threads, 1)
    gradients(const __grid_constant__ TensorMap q_map,    // of Q [B * H, D / 64, Nq, 64], in boxes of 64 rows
              const __grid_constant__ TensorMap k_map,    // of K [B * Hkv, D / 64, Nk, 64], likewise
              const __grid_constant__ TensorMap v_map,    // of V
              const __grid_constant__ TensorMap d_o_map,  // of dO, as of Q
              Problem p, int key_blocks, int shares, int round_kv_heads, attention::TileList<consumers * rows> tiles,
              const float* stats,  // [B * H * tiles][2][rows], of LSE, then of D
              float* parts,        // [2][B, Hkv, shares, Nk, D], of dV, then of dK, if there are several shares
              T* dq,               // [B, H, Nq, D]
              T* dk,               // [B, Hkv, Nk, D]
              T* dv)               // [B, Hkv, Nk, D]
{
  Shared<T, D>& smem = *dynamic_shared<Shared<T, D>, tile_alignment>();
  const bool has_keys = int(blockIdx.x) < key_blocks;
  if (threadIdx.x == 0) {
    if (has_keys)
      init(smem.of_keys);
    else
      init(smem.of_queries);
    fence_mbarrier_init();
  }
  grid_dependency_wait();  // the statistics are in global memory
  __syncthreads();         // the mbarriers are there

  KeyTile work = {};  // its `kv_head` is counted over all shares
  Tile tile = {};
  if (has_keys)
    work = attention::key_tile<rows, rows>(attention::with_shares(p, shares), round_kv_heads, int(blockIdx.x));
  else
    tiles.get(tile, blockIdx.x - key_blocks);
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  if (warpgroup == consumers) {
    setmaxnreg_dec<producer_registers>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp > 0 || !elect_one()) return;
    if (has_keys)
      load(smem.of_keys, q_map, k_map, v_map, d_o_map, stats, work, work.kv_head / shares);
    else
      load(smem.of_queries, q_map, k_map, v_map, d_o_map, p, tile);
  } else {
    setmaxnreg_inc<consumer_registers>();
    if (!has_keys)
      differentiate_queries(smem.of_queries, p, tile, stats, dq);
    else if (warpgroup == 0)
      differentiate_keys<true>(smem.of_keys, p, work, shares, parts, dv);
    else
      differentiate_keys<false>(smem.of_keys, p, work, shares, parts, dk);
  }
}

// A warp per query row, of tiles that are counted over all heads.
template <class T, int D>
__global__ void __launch_bounds__(stats_threads) row_stats(Problem p,
                                                           const T* o,        // [B, H, Nq, D]
                                                           const float* lse,  // [B, H, Nq]
                                                           const T* d_o,      // [B, H, Nq, D]
                                                           float* stats)      // [B * H * tiles][2][rows]
{
  const unsigned row = (blockIdx.x * stats_threads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  const unsigned tile = row / rows, head_tiles = ceil_div(p.seq_q, rows);
  const unsigned i = tile % head_tiles * rows + row % rows;
  const size_t q_row = size_t(tile / head_tiles) * p.seq_q + i, at = q_row * D + lane * 8;
  const bool exists = i < unsigned(p.seq_q) && lane < D / 8;
  const RowStatistics of_row = row_statistics<32 * 8>(exists, o + at, d_o + at, lse + q_row);
  if (lane == 0) {
    stats[tile * 2 * rows + row % rows] = of_row.lse;
    stats[(tile * 2 + 1) * rows + row % rows] = of_row.row_sum;
  }
}

// The workspace: the statistics, then the shares of dV and dK.
size_t stats_size(const Problem& p) { return size_t(p.batch) * p.heads * ceil_div(p.seq_q, rows) * 2 * rows; }

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<192, 256>(p, [&]<class T, int D>() {
    const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
    const int shares = attention::backward_shares<Shape<D>>(p);
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
    float *const stats = static_cast<float*>(args.workspace), *const parts = stats + stats_size(p);
    const unsigned stats_blocks = unsigned(heads) * ceil_div(p.seq_q, rows) * (rows * 32 / stats_threads);
    const int key_blocks = kv_heads * shares * ceil_div(p.seq_k, rows);
    const unsigned query_blocks = unsigned(heads) * ceil_div(p.seq_q, consumers * rows);
    launch(row_stats<T, D>, {stats_blocks, stats_threads, 0, stream}, p, o, args.lse, d_o, stats);
    launch_dependent(gradients<T, D>, {key_blocks + query_blocks, threads, sizeof(Shared<T, D>), stream},
                     tile_map<D>(q, heads, p.seq_q, rows), tile_map<D>(k, kv_heads, p.seq_k, rows),
                     tile_map<D>(v, kv_heads, p.seq_k, rows), tile_map<D>(d_o, heads, p.seq_q, rows), p, key_blocks,
                     shares, attention::kv_heads_that_share_the_l2(attention::with_shares(p, shares)),
                     attention::all_tiles<consumers * rows>(p, attention::heads_that_run_together(p)), stats, parts, dq,
                     dk, dv);
    attention::launch_sum_shares<T, D>(p, shares, true, stream, parts, dk, dv);
  });
}

size_t workspace_bytes(const Problem& p) {
  const int shares = attention::backward_shares<Shape<256>>(p);
  return (stats_size(p) + (shares > 1 ? 2 * p.kv_size() * shares : 0)) * sizeof(float);
}

}  // namespace

extern const attention::Backward wide_backward;
constinit const attention::Backward wide_backward = {
    .unsupported = attention::not_for_hopper_to_256, .workspace_bytes = workspace_bytes, .run = run};

}  // namespace hopper
