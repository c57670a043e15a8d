// Chapter 10, head dims above 128, backward: dK and dV in some thread blocks, dQ in others.
//
//   row_stats    a warp per query row: log2(e) LSE and delta = rowsum(dO o O)
//   gradients    all other work, in thread blocks of two kinds, of which those with keys come first: backward_keys.h
//                and backward_queries.h
//   sum_shares   adds up the shares of dK and dV, where there are several (attention/backward_shares.h)
//
// A block with keys owns 64 rows of K and V and its share of their gradients; Q and dO pass by in tiles of 64 rows, of
// its share of the query heads that read this kv head. At D = 256 a gradient of 64 rows takes 128 registers of each of
// a warpgroup's threads, so a consumer has room for one of them, where a consumer of 21_shared has two:
//
//                          consumer 0                        consumer 1
//   1. start               S^T = K Q^T                       dP^T = V dO^T                 of tile i + 1
//   2. start               dV += P^T dO                      dK += dS^T Q                  of tile i
//   3. while 2 runs        P^T = 2^(S^T - LSE)               dS^T = P^T o (dP^T - delta)   of tile i + 1
//
// P^T goes from one to the other through shared memory, in fp32: each thread reads what its counterpart has
// written. A block with queries owns 128 rows of Q, dO and dQ, 64 to a consumer; K and V pass by:
//
//   1. S = Q K^T, dP = dO V^T
//   2. P = 2^(S - LSE) while dP is multiplied, dS = P o (dP - delta)
//   3. dQ += dS K
//
// Every gradient has one owner, or shares that are added up in their order: no sum in memory has to wait for its turn,
// and the result is the same bits in every run. The price is that S and dP are computed twice: seven products where the
// equations have five.
//
// Tensors lie as their strides say (maps.h).
//
// Expected limit: tensor cores, which have two fifths more to do than they should.
#include "attention/backward_shares.h"
#include "attention/dispatch.h"
#include "attention/schedule.h"
#include "backward_keys.h"
#include "backward_queries.h"
#include "device/dependent_launch.h"
#include "device/elect.h"
#include "device/setmaxnreg.h"

namespace hopper {
namespace {

using attention::BackwardArgs;
using attention::KeyTile;
using attention::Tile;
using attention::View;
using namespace wide;

constexpr int threads = warpgroup_threads * (consumers + 1);

// 65536 registers are 168 for each of 384 threads, in multiples of 8: 24 + 2 * 240 = 3 * 168.
constexpr int producer_registers = 24, consumer_registers = 240;

constexpr int stats_threads = 256;  // of row_stats

template <int D_>
struct Shape {  // of a block with keys
  static constexpr int D = D_, Br = rows, Bc = rows;
};

template <class T, int D>
union Shared {
  KeysShared<T, D> of_keys;
  QueriesShared<T, D> of_queries;
};

template <class T, int D>
__global__ void __launch_bounds__(threads, 1)
    gradients(const __grid_constant__ TensorMap q_map,    // of Q [B, H, D / 64, Nq, 64], in boxes of 64 rows
              const __grid_constant__ TensorMap k_map,    // of K [B, Hkv, D / 64, Nk, 64], likewise
              const __grid_constant__ TensorMap v_map,    // of V
              const __grid_constant__ TensorMap d_o_map,  // of dO, as of Q
              Problem p, int key_blocks, int shares, int round_kv_heads, attention::TileList<consumers * rows> tiles,
              const float* stats,  // [B * H * tiles][2][rows], of LSE, then of delta
              float* parts,        // [2][B, Hkv, shares, Nk, D], of dV, then of dK, if there are several shares
              View<T> dq,          // [B, H, Nq, D]
              View<T> dk,          // [B, Hkv, Nk, D]
              View<T> dv)          // [B, Hkv, Nk, D]
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
      load(smem.of_keys, q_map, k_map, v_map, d_o_map, p, stats, work, work.kv_head / shares);
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
                                                           View<const T> o,    // [B, H, Nq, D]
                                                           const float* lse,   // [B, H, Nq]
                                                           View<const T> d_o,  // [B, H, Nq, D]
                                                           float* stats)       // [B * H * tiles][2][rows]
{
  const unsigned row = (blockIdx.x * stats_threads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  const unsigned tile = row / rows, head_tiles = ceil_div(p.seq_q, rows);
  const unsigned head = tile / head_tiles, i = tile % head_tiles * rows + row % rows;
  const bool exists = i < unsigned(p.seq_q) && lane < D / 8;
  const RowStatistics of_row =
      row_statistics<32 * 8>(exists, o.at_row(o.of_head(head, p.heads) + lane, i),
                             d_o.at_row(d_o.of_head(head, p.heads) + lane, i), lse + size_t(head) * p.seq_q + i);
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
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::views_of<T>(p, args);
    float *const stats = static_cast<float*>(args.workspace), *const parts = stats + stats_size(p);
    const unsigned stats_blocks = unsigned(heads) * ceil_div(p.seq_q, rows) * (rows * 32 / stats_threads);
    const int key_blocks = kv_heads * shares * ceil_div(p.seq_k, rows);
    const unsigned query_blocks = unsigned(heads) * ceil_div(p.seq_q, consumers * rows);
    launch(row_stats<T, D>, {stats_blocks, stats_threads, 0, stream}, p, o, args.lse, d_o, stats);
    launch_dependent(gradients<T, D>, {key_blocks + query_blocks, threads, sizeof(Shared<T, D>), stream},
                     map_of<D>(p, q, p.heads, p.seq_q, rows), map_of<D>(p, k, p.kv_heads, p.seq_k, rows),
                     map_of<D>(p, v, p.kv_heads, p.seq_k, rows), map_of<D>(p, d_o, p.heads, p.seq_q, rows), p,
                     key_blocks, shares, attention::kv_heads_that_share_the_l2(attention::with_shares(p, shares)),
                     attention::all_tiles<consumers * rows>(p, attention::heads_that_run_together(p)), stats, parts, dq,
                     dk, dv);
    attention::launch_sum_shares<T, D>(p, shares, Blocks::dependent, stream, parts, dk, dv);
  });
}

size_t workspace_bytes(const Problem& p) {
  const int shares = attention::backward_shares<Shape<256>>(p);
  return (stats_size(p) + (shares > 1 ? 2 * p.kv_size() * shares : 0)) * sizeof(float);
}

}  // namespace

extern const attention::Backward wide_backward;
constinit const attention::Backward wide_backward = {.unsupported = attention::not_for_hopper_to_256,
                                                     .workspace_bytes = workspace_bytes,
                                                     .run = run,
                                                     .takes = attention::views};

}  // namespace hopper
