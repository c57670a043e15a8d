// Chapter 10, rung 13, turns, backward: dQ is added up in one order, so that every run has the same bits.
//
//   prepare_sums_and_turns
//              a few lanes per query: log2(e) LSE and delta = rowsum(dO o O); zeros where dQ will be added up, in the
//              semaphores and in the count of tickets
//   gradients  a thread block owns Bc = 128 rows of K and V and their gradients; Q and dO pass by in tiles of Br rows,
//              of all query heads that read this kv head, in each from the diagonal on
//   convert    dQ from its fp32 sum to the storage type
//
// A thread block of `gradients` is a producer and two consumers, as in 12_bulk_backward, with 64 keys each. For each
// tile:
//
//   1. S^T = K Q^T, dP^T = V dO^T             64 x Br each, K and V as A from shared memory
//   2. P^T = 2^(S^T - LSE)                    while dP^T is multiplied; stays in registers, as A of dV
//      dS^T = P^T o (dP^T - delta)            stays in registers, as A of dK, and goes to shared memory, transposed
//   3. dV += P^T dO                           and meanwhile both consumers wait until dS of all keys is there
//   4. dQ^T = K^T dS^T                        64 x 64 of it, over the keys of both consumers
//      dK += dS^T Q                           and meanwhile dQ goes to shared memory
//
// and two other warps of the producer's warpgroup, one for each consumer, add dQ to memory when it is their turn.
//
// What changed since 12_bulk_backward: the blocks of a kv head add to dQ in the order of their keys, by tickets and
// semaphores, as in chapter 08. A block draws a ticket, which says what it owns: so the blocks whose turns come before
// its own have started. A warp waits for its turn, and passes it on when the sum is in global memory. At D = 64 the
// tickets also go round as many kv heads as the L2 cache has room for, not always 16 (heads_at_once): with more heads
// fewer blocks of one head run at a time, and fewer wait for one another.
//
// Expected limit: as in 12_bulk_backward; and waits. Each block of a head adds to a tile of dQ one tile later than the
// block before it. Under the causal mask, at D = 128, it also begins two tiles further down, at its own diagonal, where
// the block before comes two tiles later. So of a head's eight blocks that run together the last waits for 21 tiles,
// and on average they wait for 10. Predicted: 0.93 times bulk at N = 1024, where a multiprocessor has 140 tiles, and
// 0.96 at 8192, where the turns themselves cost 0.03; without a mask 0.97.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/backward_workspace.h"
#include "attention/padded.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/elect.h"
#include "device/mbarrier.h"
#include "device/named_barrier.h"
#include "device/numeric.h"
#include "device/proxy_fence.h"
#include "device/ring.h"
#include "device/semaphore.h"
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
using namespace warpgroup_backward;

constexpr int consumers = 2, threads = warpgroup_threads * (consumers + 1);
constexpr int Bc = wgmma_rows * consumers;  // keys of a thread block, wgmma_rows to a consumer

constexpr int part_size = 64 * 64;  // a consumer's part of a tile of dQ: 64 columns of 64 queries

// 65536 registers are 168 for each of 384 threads, in multiples of 8: 24 + 2 * 240 = 3 * 168.
constexpr int producer_registers = 24, consumer_registers = 240;

template <int D_>
struct Shape {
  static constexpr int D = D_, Bc = hopper::Bc;
  static constexpr int Br = 128 * 64 / D;                 // queries of a tile: S^T and dP^T take Br / 2 registers each
  static constexpr int threads = 256, parts = consumers;  // of prepare and convert; parts of a tile of dQ, 64 x 64 each
};

template <class T, int D>
struct Shared {
  static constexpr int Br = Shape<D>::Br;
  T k[Bc * D], v[Bc * D];             // each tile in D / 64 pages of 128 bytes a row, swizzled
  T q[2][Br * D], d_o[2][Br * D];     // two tiles, as all that follows
  T ds[2][Br * Bc];                   // dS in two pages, each for the keys of one consumer
  float dq[2][consumers][part_size];  // fragments of dQ^T
  float stats[2][2 * Br];             // LSE, then delta
  int ticket;
  Mbarrier kv_full, full[2], empty[2], dq_full[2][consumers], dq_empty[2][consumers];
};

// Starts the copies of a block. One thread.
template <class T, int D>
__device__ __forceinline__ void load(Shared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const TensorMap& d_o_map, const float* stats,
                                     KeyTile work) {
  constexpr int Br = Shape<D>::Br, stats_bytes = 2 * Br * sizeof(float);
  mbarrier_arrive_expect_tx(&smem.kv_full, 2 * Bc * D * sizeof(T));
  tensor_load(smem.k, k_map, &smem.kv_full, 0, work.j0, 0, work.kv_head);
  tensor_load(smem.v, v_map, &smem.kv_full, 0, work.j0, 0, work.kv_head);
  Ring<2> ring;
#pragma unroll 1
  for (int head = work.first_head; head < work.first_head + work.heads; head++)
#pragma unroll 1
    for (int i = work.start; i < work.head_tiles; i++, ring.advance()) {
      mbarrier_wait(&smem.empty[ring.place], ring.parity ^ 1);
      Mbarrier* full = &smem.full[ring.place];
      mbarrier_arrive_expect_tx(full, 2 * Br * D * sizeof(T) + stats_bytes);
      tensor_load(smem.q[ring.place], q_map, full, 0, i * Br, 0, head);
      tensor_load(smem.d_o[ring.place], d_o_map, full, 0, i * Br, 0, head);
      bulk_load(smem.stats[ring.place], stats + (size_t(head) * work.head_tiles + i) * 2 * Br, stats_bytes, full);
    }
}

// Adds a consumer's parts of dQ to memory, each when it is this block's turn. One thread.
template <class T, int D>
__device__ __forceinline__ void add_dq(Shared<T, D>& smem, float* dq_sum, int* turns, KeyTile work, int consumer) {
  const int kv_tile = work.j0 / Bc;
  Ring<2> ring;
#pragma unroll 1
  for (int head = work.first_head; head < work.first_head + work.heads; head++)
#pragma unroll 1
    for (int i = work.start; i < work.head_tiles; i++, ring.advance()) {
      const size_t part = (size_t(head) * work.head_tiles + i) * consumers + consumer;
      mbarrier_wait(&smem.dq_full[ring.place][consumer], ring.parity);
      semaphore_wait(turns + part, kv_tile);  // for equal bits
      bulk_add(dq_sum + part * part_size, smem.dq[ring.place][consumer], part_size * sizeof(float));
      bulk_commit();
      bulk_wait_read<0>();
      mbarrier_arrive(&smem.dq_empty[ring.place][consumer]);
      bulk_wait<0>();  // the sum is in global memory, and the next block may have its turn
      fence_acq_rel();
      semaphore_set(turns + part, kv_tile + 1);
    }
}

// A consumer's 64 keys.
template <class T, int D>
__device__ __forceinline__ void differentiate(Shared<T, D>& smem, const Problem& p, KeyTile work, T* dk, T* dv) {
  constexpr int Br = Shape<D>::Br;
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int warp_key = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 keys
  const Watched kv_rows = {int64_t(work.kv_head) * p.seq_k + work.j0 + warp_key, 0, p.seq_k - work.j0 - warp_key, D};
  const T *k_rows = smem.k + consumer * wgmma_rows * page_row, *v_rows = smem.v + consumer * wgmma_rows * page_row;
  // Of dQ^T, at D = 128 each consumer makes 64 of the columns of all queries, at D = 64 all columns of 64 queries.
  const T* k_columns = smem.k + (D == 128 ? consumer * Bc * page_row : 0);
  const int first_query = D == 128 ? 0 : consumer * 64;

  float dv_reg[1][D / 8][4] = {}, dk_reg[1][D / 8][4] = {};
  Ring<2> ring;
  mbarrier_wait(&smem.kv_full, 0);
#pragma unroll 1
  for (int head = work.first_head; head < work.first_head + work.heads; head++)
#pragma unroll 1
    for (int i = work.start; i < work.head_tiles; i++, ring.advance()) {
      const T *q = smem.q[ring.place], *d_o = smem.d_o[ring.place];
      const float* stats = smem.stats[ring.place];
      T* ds = smem.ds[ring.place];
      const int64_t q_row = int64_t(head) * p.seq_q + i * Br;
      const Watched tile = {q_row, work.j0 + warp_key, p.seq_q - i * Br, p.seq_k - work.j0 - warp_key};

      watch_step("1. S = Q K^T, dP = dO V^T");  // transposed
      float p_reg[1][Br / 8][4], ds_reg[1][Br / 8][4];
      mbarrier_wait(&smem.full[ring.place], ring.parity);
      wgmma_fence();
      start_product<Bc, D, Br>(p_reg, k_rows, q);
      start_product<Bc, D, Br>(ds_reg, v_rows, d_o);

      watch_step("2. P = exp(S - LSE), dS = P (dP - delta)");  // transposed; dS to shared memory, too
      uint32_t p_half[1][Br / 16][4], ds_half[1][Br / 16][4];
      wgmma_wait<1>(p_reg);
      make_p<Br>(p_reg, p.scale, stats, [&](int row) { return p.visible_keys(i * Br + row) - work.j0 - warp_key; });
      swizzled_tile::round_fragments<T, Br>(p_half, p_reg);
      watch_transpose("P", tile, p_reg, 1 / p_factor);
      wgmma_wait<0>(ds_reg);
      watch_transpose("dP", tile, ds_reg);
      make_ds<Br>(ds_reg, fragments_of(p_reg), stats + Br);
      watch_transpose("dS", tile, ds_reg);
      swizzled_tile::round_fragments<T, Br>(ds_half, ds_reg);
      swizzled_tile::store_transpose<Br, Br>(ds + consumer * Br * page_row, ds_half, threadIdx.x / 32 % 4);
      fence_proxy_async();

      watch_step("3. dV += P^T dO");
      wgmma_fence();
      start_sum<D, Br>(dv_reg, p_half, d_o);
      named_barrier_sync(1,
                         warpgroup_threads * consumers);  // dS is in shared memory, and dQ of the tile before is done

      watch_step("4. dQ += dS K, dK += dS^T Q");
      float dq_reg[1][8][4];
      start_dq<Bc, Br>(dq_reg, k_columns, ds + first_query * page_row);
      start_sum<D, Br>(dk_reg, ds_half, q);
      wgmma_wait<1>(dq_reg);
      watch_transpose("dQ", {q_row + first_query, warp_key % D, p.seq_q - i * Br - first_query, 16}, dq_reg, p.scale);
      mbarrier_wait(&smem.dq_empty[ring.place][consumer], ring.parity ^ 1);
      float4* dq = reinterpret_cast<float4*>(smem.dq[ring.place][consumer]) + threadIdx.x % warpgroup_threads;
#pragma unroll
      for (int n = 0; n < 8; n++)
        dq[n * warpgroup_threads] = make_float4(dq_reg[0][n][0], dq_reg[0][n][1], dq_reg[0][n][2], dq_reg[0][n][3]);
      fence_proxy_async();
      __syncwarp();  // the warp's part of dQ is in shared memory
      if (lane == 0) mbarrier_arrive(&smem.dq_full[ring.place][consumer]);
      wgmma_wait<0>(dv_reg, dk_reg);
      watch("dV", kv_rows, dv_reg, 1 / p_factor);
      watch("dK", kv_rows, dk_reg, p.scale);
      if (lane == 0) mbarrier_arrive(&smem.empty[ring.place]);
    }

  named_barrier_sync(1, warpgroup_threads * consumers);  // everyone is done with K and V
  const int rows_left = p.seq_k - work.j0 - warp_key;
  const size_t to = (size_t(work.kv_head) * p.seq_k + work.j0 + warp_key) * D;
  swizzled_tile::store_rows<Bc, D>(dv + to, smem.v + warp_key * page_row, dv_reg, 1 / p_factor, rows_left);
  swizzled_tile::store_rows<Bc, D>(dk + to, smem.k + warp_key * page_row, dk_reg, p.scale, rows_left);
}

template <class T, int D>
__global__ void __launch_bounds__(threads, 1)
    gradients(const __grid_constant__ TensorMap q_map,    // of Q [B * H, D / 64, Nq, 64], in boxes of Br rows
              const __grid_constant__ TensorMap k_map,    // of K [B * Hkv, D / 64, Nk, 64], in boxes of Bc rows
              const __grid_constant__ TensorMap v_map,    // of V, likewise
              const __grid_constant__ TensorMap d_o_map,  // of dO, as of Q
              Problem p, int heads_at_once,
              const float* stats,  // [B * H * tiles][2][Br], of LSE, then of delta
              float* dq_sum,       // [B * H * tiles][consumers][8][128][4]: fragments of dQ^T of their threads
              int* turns,          // [B * H * tiles][consumers]: the kv tile that may add to dq_sum
              int* tickets,        // drawn so far
              T* dk,               // [B, Hkv, Nk, D]
              T* dv)               // [B, Hkv, Nk, D]
{
  Shared<T, D>& smem = *dynamic_shared<Shared<T, D>, tile_alignment>();
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.kv_full, 1);
    for (int i = 0; i < 2; i++) {
      mbarrier_init(&smem.full[i], 1);
      mbarrier_init(&smem.empty[i], 4 * consumers);  // their warps
      for (int consumer = 0; consumer < consumers; consumer++) {
        mbarrier_init(&smem.dq_full[i][consumer], 4);
        mbarrier_init(&smem.dq_empty[i][consumer], 1);
      }
    }
    fence_mbarrier_init();
    smem.ticket = atomicAdd(tickets, 1);
  }
  __syncthreads();  // the mbarriers are there, and the ticket

  const KeyTile work = attention::key_tile<Bc, Shape<D>::Br>(p, heads_at_once, __shfl_sync(0xffffffff, smem.ticket, 0));
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  if (warpgroup == consumers) {
    setmaxnreg_dec<producer_registers>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp == consumers && elect_one())
      load(smem, q_map, k_map, v_map, d_o_map, stats, work);
    else if (warp < consumers && elect_one())
      add_dq(smem, dq_sum, turns, work, warp);
  } else {
    setmaxnreg_inc<consumer_registers>();
    differentiate(smem, p, work, dk, dv);
  }
}

template <class T, class S>
__global__ void convert(Problem p,
                        const float4* dq_sum,  // [B * H * tiles][consumers][8 n][4 warps][8 g][4 t]
                        T* dq)                 // [B, H, Nq, D]
{
  convert_dq_transposed<T, S>(p, dq_sum, dq);
}

// How many kv heads the tickets go round: 16, or at D = 64 as many as have room in 32 MB of L2 cache for Q, dO and dQ.
// With more heads, fewer blocks of one head run at a time, and so fewer wait for one another.
template <int D>
int heads_at_once(const Problem& p) {
  const size_t kv_heads = size_t(p.batch) * p.kv_heads, most = (kv_heads << 25) / (p.q_size() * (2 + 2 + 4));
  return int(std::min(kv_heads, D == 128 ? 16 : std::max<size_t>(16, most)));
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    using S = Shape<D>;
    const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
    const attention::BackwardTiles<S> tiles(p);
    const auto [dq_sum, stats, turns, tickets] = attention::BackwardWorkspace::of(args.workspace, tiles, consumers);
    const TensorMap q_map = tile_map<D>(q, heads, p.seq_q, S::Br), d_o_map = tile_map<D>(d_o, heads, p.seq_q, S::Br);
    const TensorMap k_map = tile_map<D>(k, kv_heads, p.seq_k, Bc), v_map = tile_map<D>(v, kv_heads, p.seq_k, Bc);
    float4* const sums = reinterpret_cast<float4*>(dq_sum);
    launch(prepare_sums_and_turns<T, S>, {tiles.row_blocks, S::threads, 0, stream}, p, o, args.lse, d_o, stats, sums,
           turns, tickets);
    launch(gradients<T, D>, {tiles.key_blocks, threads, sizeof(Shared<T, D>), stream}, q_map, k_map, v_map, d_o_map, p,
           heads_at_once<D>(p), stats, dq_sum, turns, tickets, dk, dv);
    launch(convert<T, S>, {tiles.q_tiles, S::threads, 0, stream}, p, sums, dq);
  });
}

size_t workspace_bytes(const Problem& p) {
  return attention::BackwardWorkspace::bytes(p, p.head_dim == 64 ? Shape<64>::Br : Shape<128>::Br, consumers);
}

constexpr attention::Backward unpadded = {
    .unsupported = attention::not_for_hopper, .workspace_bytes = workspace_bytes, .run = run};

}  // namespace

extern const attention::Backward turns_backward;
constinit const attention::Backward turns_backward = attention::padded<unpadded>;

}  // namespace hopper
