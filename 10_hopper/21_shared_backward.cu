// Chapter 10, rung 21, shared, backward: the query heads that read one kv head are shared out.
//
//   prepare_turns  a few lanes per query: log2(e) LSE and delta = rowsum(dO o O); zeros in dQ for rows that see no key
//   gradients      a thread block owns Bc = 128 rows of K and V and its share of their gradients; Q and dO pass by in
//                  tiles of Br rows, of its share of the query heads that read this kv head, in each from the last tile
//                  up to the diagonal
//   sum_shares     adds up the shares of dK and dV, where there are several (attention/backward_shares.h)
//
// A block of `gradients` is a producer (one thread that copies) and two consumers (warpgroups with 64 keys each):
//
//   1. S^T = K Q^T, dP^T = V dO^T             64 x Br each, K and V as A from shared memory
//   2. P^T = 2^(S^T - LSE)                    at D = 64 while dP^T is multiplied; stays in registers, as A of dV
//      dS^T = P^T o (dP^T - delta)            stays in registers, as A of dK, and goes to shared memory, transposed
//   3. dV += P^T dO                           and meanwhile both consumers wait until dS of all keys is there
//   4. dQ^T = K^T dS^T                        64 x 64 of it, over the keys of both consumers
//      dK += dS^T Q                           and meanwhile dQ goes to shared memory
//
// and two other warps of the producer's warpgroup, one for each consumer, bring dQ to memory when it is their turn.
// Where this block is the last to add, its consumers add what the others have added up, and dQ leaves rounded.
//
// What changed since fetched: where blocks with all query heads of a kv head would be too few, or too long, a block has
// only a share. With 32 query heads, 8 kv heads and 512 keys there were 32 blocks for 132 multiprocessors; with four
// shares there are 128. Each block leaves its dK and dV in fp32, and one more kernel adds them up, always in the same
// order. How many shares there are, the host decides (attention/backward_shares.h). Head dims above 128 go to other
// kernels, in wide/backward.cu.
//
// A diff to 18_fetched_backward.cu shows three things more. add_dq is in device/dq_in_turn.h, where later rungs find it
// too; what it does is the same. The number of heads in a round is that of rounds, which ran fetched's kernel with it.
// And two parameters are for rungs that run this kernel too: `cyclic`, with QueryOrder, for rung 22, and `after`, with
// grid_dependency_wait, for rung 23. Here `cyclic` is false and there is nothing to wait for.
//
// Expected limit: shared memory, as in bulk.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/backward_shares.h"
#include "attention/backward_workspace.h"
#include "attention/padded.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/dependent_launch.h"
#include "device/dq_in_turn.h"
#include "device/elect.h"
#include "device/mbarrier.h"
#include "device/named_barrier.h"
#include "device/numeric.h"
#include "device/proxy_fence.h"
#include "device/ring.h"
#include "device/setmaxnreg.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/warpgroup_backward.h"
#include "device/watch.h"

namespace hopper {

extern const attention::Backward wide_backward;  // for D = 192 and 256

using attention::BackwardArgs;
using attention::Problem;

namespace {

using attention::KeyTile;
using attention::QueryOrder;
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
  static constexpr int threads = 256, parts = consumers;  // of prepare_turns; parts of a tile of dQ, 64 x 64 each
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
  Mbarrier kv_full, full[2], empty[2], dq_full[2][consumers], dq_ready[2][consumers];
};

// Starts the copies of a block. One thread.
template <class T, int D, class Order>
__device__ __forceinline__ void load(Shared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const TensorMap& d_o_map, const float* stats, KeyTile work,
                                     Order order, int kv_head) {
  constexpr int Br = Shape<D>::Br, stats_bytes = 2 * Br * sizeof(float);
  mbarrier_arrive_expect_tx(&smem.kv_full, 2 * Bc * D * sizeof(T));
  tensor_load(smem.k, k_map, &smem.kv_full, 0, work.j0, 0, kv_head);
  tensor_load(smem.v, v_map, &smem.kv_full, 0, work.j0, 0, kv_head);
  Ring<2> ring;
#pragma unroll 1
  for (int head = work.first_head; head < work.first_head + work.heads; head++)
#pragma unroll 1
    for (int step = work.head_tiles - 1; step >= work.start; step--, ring.advance()) {
      const int i = order.tile(step);
      mbarrier_wait(&smem.empty[ring.place], ring.parity ^ 1);
      Mbarrier* full = &smem.full[ring.place];
      mbarrier_arrive_expect_tx(full, 2 * Br * D * sizeof(T) + stats_bytes);
      tensor_load(smem.q[ring.place], q_map, full, 0, i * Br, 0, head);
      tensor_load(smem.d_o[ring.place], d_o_map, full, 0, i * Br, 0, head);
      bulk_load(smem.stats[ring.place], stats + (size_t(head) * work.head_tiles + i) * 2 * Br, stats_bytes, full);
    }
}

// A consumer's 64 keys.
template <class T, int D, class Order>
__device__ __forceinline__ void differentiate(Shared<T, D>& smem, const Problem& p, KeyTile work, Order order,
                                              int shares, float* parts, T* dk, T* dv) {
  constexpr int Br = Shape<D>::Br;
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int warp_key = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 keys
  const Watched kv_rows = {int64_t(work.kv_head / shares) * p.seq_k + work.j0 + warp_key, 0,
                           p.seq_k - work.j0 - warp_key, D};
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
    for (int step = work.head_tiles - 1; step >= work.start; step--, ring.advance()) {
      const int i = order.tile(step);
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
      const auto visible = [&](int row) { return p.visible_keys(i * Br + row) - work.j0 - warp_key; };
      if constexpr (D == 64)
        make_p_ahead<Br>(p_reg, p.scale, stats, visible);  // beside a product, in machine code too
      else
        make_p<Br>(p_reg, p.scale, stats, visible);
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
      mbarrier_wait(&smem.dq_ready[ring.place][consumer], ring.parity);
      float4* dq = reinterpret_cast<float4*>(smem.dq[ring.place][consumer]) + threadIdx.x % warpgroup_threads;
      if (order.template is_last<Br>(p, i)) {
        if (order.turn(i) > 0) {
#pragma unroll
          for (int n = 0; n < 8; n++) {
            const float4 others = dq[n * warpgroup_threads];
            dq_reg[0][n][0] += others.x, dq_reg[0][n][1] += others.y;
            dq_reg[0][n][2] += others.z, dq_reg[0][n][3] += others.w;
          }
          named_barrier_sync(2 + consumer,
                             warpgroup_threads);  // the consumer has read the sum, and dQ may take its place
        }
#pragma unroll
        for (int n = 0; n < 8; n++)
          for (int r = 0; r < 4; r++) dq_reg[0][n][r] *= p.scale;
        uint32_t dq_half[1][4][4];
        swizzled_tile::round_fragments<T, 64>(dq_half, dq_reg);
        swizzled_tile::store_transpose<64, 64>(reinterpret_cast<T*>(smem.dq[ring.place][consumer]), dq_half,
                                               threadIdx.x / 32 % 4);
      } else {
#pragma unroll
        for (int n = 0; n < 8; n++)
          dq[n * warpgroup_threads] = make_float4(dq_reg[0][n][0], dq_reg[0][n][1], dq_reg[0][n][2], dq_reg[0][n][3]);
      }
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
  const size_t row = size_t(work.kv_head) * p.seq_k + work.j0 + warp_key;  // over all shares
  if (shares == 1) {
    swizzled_tile::store_rows<Bc, D>(dv + row * D, smem.v + warp_key * page_row, dv_reg, 1 / p_factor, rows_left);
    swizzled_tile::store_rows<Bc, D>(dk + row * D, smem.k + warp_key * page_row, dk_reg, p.scale, rows_left);
  } else {
    const size_t size = size_t(p.batch) * p.kv_heads * shares * p.seq_k * D;  // of all shares of dV
    store_fp32<D>(parts + row * D, dv_reg, 1 / p_factor, rows_left);
    store_fp32<D>(parts + size + row * D, dk_reg, p.scale, rows_left);
  }
}

template <class T, int D, bool cyclic>
__global__ void __launch_bounds__(threads, 1)
    gradients(const __grid_constant__ TensorMap q_map,    // of Q [B * H, D / 64, Nq, 64], in boxes of Br rows
              const __grid_constant__ TensorMap k_map,    // of K [B * Hkv, D / 64, Nk, 64], in boxes of Bc rows
              const __grid_constant__ TensorMap v_map,    // of V, likewise
              const __grid_constant__ TensorMap d_o_map,  // of dO, as of Q
              const __grid_constant__ TensorMap dq_map,   // of dQ, likewise, in boxes of 64 rows
              Problem p, int shares, int round_heads,
              const float* stats,  // [B * H * tiles][2][Br], of LSE, then of delta
              float* dq_sum,       // [B * H * tiles][consumers][8][128][4]: fragments of dQ^T of their threads
              int* turns,          // [B * H * tiles][consumers]: the turn that may add to dq_sum
              int* tickets,        // drawn so far
              float* parts,        // [2][B, Hkv, shares, Nk, D], of dV, then of dK, if there are several shares
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
        mbarrier_init(&smem.dq_ready[i][consumer], 1);
      }
    }
    fence_mbarrier_init();
  }
  grid_dependency_wait();  // what the kernel before this one has written is in global memory
  if (threadIdx.x == 0) smem.ticket = atomicAdd(tickets, 1);
  __syncthreads();  // the mbarriers are there, and the ticket

  // Its `kv_head` is counted over all shares.
  const KeyTile work = attention::key_tile<Bc, Shape<D>::Br>(attention::with_shares(p, shares), round_heads,
                                                             __shfl_sync(0xffffffff, smem.ticket, 0));
  const QueryOrder<Bc, cyclic> order(p, work);
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  if (warpgroup == consumers) {
    setmaxnreg_dec<producer_registers>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp == consumers && elect_one())
      load(smem, q_map, k_map, v_map, d_o_map, stats, work, order, work.kv_head / shares);
    else if (warp < consumers && elect_one())
      add_dq<Shape<D>>(smem, dq_map, p, dq_sum, turns, work, order, warp);
  } else {
    setmaxnreg_inc<consumer_registers>();
    differentiate(smem, p, work, order, shares, parts, dk, dv);
  }
}

}  // namespace

// `cyclic`: where all blocks run at the same time, and there is no mask, they go through the queries in a cyclic order.
// `after`: Blocks::dependent, if kernels may start while the one before them ends.
void backward_shared(const Problem& p, const BackwardArgs& args, cudaStream_t stream, bool cyclic, Blocks after) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    using S = Shape<D>;
    const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads, shares = attention::backward_shares<S>(p);
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
    const attention::BackwardTiles<S> tiles(p);
    const auto [dq_sum, stats, turns, tickets] = attention::BackwardWorkspace::of(args.workspace, tiles, consumers);
    float* const parts = attention::parts_of_shares<S>(p, args.workspace, consumers);
    const TensorMap q_map = tile_map<D>(q, heads, p.seq_q, S::Br), d_o_map = tile_map<D>(d_o, heads, p.seq_q, S::Br);
    const TensorMap k_map = tile_map<D>(k, kv_heads, p.seq_k, Bc), v_map = tile_map<D>(v, kv_heads, p.seq_k, Bc);
    const TensorMap dq_map = tile_map<D>(dq, heads, p.seq_q, 64, D, 1);
    launch(prepare_turns<T, S>, {tiles.row_blocks, S::threads, 0, stream}, p, o, args.lse, d_o, stats, turns, tickets,
           dq);
    const unsigned blocks = tiles.key_blocks * shares;
    const bool together = cyclic && p.mask == attention::Mask::none && blocks <= unsigned(multiprocessors());
    launch_grid(together ? gradients<T, D, true> : gradients<T, D, false>,
                {blocks, threads, sizeof(Shared<T, D>), stream}, together ? Blocks::together : after, q_map, k_map,
                v_map, d_o_map, dq_map, p, shares,
                attention::kv_heads_that_share_the_l2(attention::with_shares(p, shares)), stats, dq_sum, turns, tickets,
                parts, dk, dv);
    attention::launch_sum_shares<T, D>(p, shares, after, stream, parts, dk, dv);
  });
}

size_t workspace_of_shared(const Problem& p) {
  return p.head_dim == 64 ? attention::workspace_with_shares<Shape<64>>(p, consumers)
                          : attention::workspace_with_shares<Shape<128>>(p, consumers);
}

namespace {

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  backward_shared(p, args, stream, false, Blocks::apart);
}

constexpr attention::Backward unpadded = {
    .unsupported = attention::not_for_hopper_to_256, .workspace_bytes = workspace_of_shared, .run = run};

}  // namespace

extern const attention::Backward shared_backward;
constinit const attention::Backward shared_backward =
    attention::padded<unpadded, attention::next_64_128_192_256, wide_backward>;

}  // namespace hopper
