// Chapter 10, rung 27, clusters, forward: two thread blocks share each tile of K and V.
//
// A cluster is two thread blocks on multiprocessors next to each other. It stays as long as the kernel runs and takes
// tile after tile, each Br = 384 query rows of one head, in six parts of 64 rows. Each block has three consumer
// warpgroups, and consumer c of block r computes part 2 c + r, from Q to O. The fourth warpgroup of a block is the
// producer, of which two warps have work. What each does, waits for, and signals (->), in this block or in both:
//
//   producer, warp 0   which tile              block 0 waits for q_empty             -> drawn, of block 1
//                                              block 1 waits for drawn
//                      its block's parts of Q                                        -> q_full
//                      half of each K and V,   waits for k_empty, v_empty            -> k_full, v_full, of both
//                      for both blocks
//   producer, warp 1   O to memory             waits for o_full                      -> q_empty, of block 0
//   consumers          as in late              wait for q_full, k_full, v_full       -> k_empty, v_empty, of both
//                      O / l                                                         -> o_full
//
// What changed since late and polynomial: a block brings half of each tile of K and V, and the copy puts it into the
// shared memory of both blocks (a multicast). So each tile leaves the L2 cache once for 384 rows, not twice. The price
// is that the blocks wait for one another: a place is empty when the consumers of both blocks have read it. Parts of
// rows are dealt out in turn, so that under the causal mask both blocks have nearly as many tiles of keys, and the last
// rows of a head, where they are few, are work for both. For head dims above 64 all is as in prompt with three
// consumers: no turns, no polynomial.
//
// Expected, over the rung that runs these problems before (`chosen`, at D = 64 with `polynomial`), H200, N = 8192, no
// mask: at D = 128 nothing launch by launch (0.99 to 1.01 times as fast), where each consumer's way through a tile is
// the limit, and 1.02 times back to back, where power is: the copies of a launch are 5.8 GB from the L2, half of them
// are spared, and at 10 to 15 pJ a byte that is 3 to 4 percent of a launch's joules. At D = 64 exponentials are the
// limit, a wait for the other block is not made up for, and a first trial lost 6 percent (in_depth.md): 0.96 launch by
// launch, 0.98 back to back.
// Under the mask 1 percent less, since a tile of 384 rows has a longer diagonal: one and a half tiles of 64 keys more
// for which some consumers have nothing to do. It loses where tiles are few, N <= 2048: half as many of them, twice as
// large.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/cluster.h"
#include "device/dependent_launch.h"
#include "device/elect.h"
#include "device/lazy_softmax.h"
#include "device/limits.h"
#include "device/math.h"
#include "device/mbarrier.h"
#include "device/named_barrier.h"
#include "device/numeric.h"
#include "device/proxy_fence.h"
#include "device/ring.h"
#include "device/setmaxnreg.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/warpgroup_tile.h"
#include "device/watch.h"

namespace hopper {

using attention::ForwardArgs;
using attention::Problem;

extern const attention::Forward wide_forward;  // for D = 192 and 256

namespace {

using attention::key_tiles;
using attention::Tile;
using attention::TileList;
using namespace warpgroup_tile;

constexpr int consumers = 3, threads = warpgroup_threads * (consumers + 1);
constexpr int cluster = 2;                            // thread blocks
constexpr int Br = wgmma_rows * consumers * cluster;  // query rows of a tile, wgmma_rows to a consumer
constexpr int turn_threads = 2 * warpgroup_threads;   // who passes a turn on, and who waits for it

// 65536 registers are 128 for each of 512 threads. The producer gives most of its own away: 3 * 160 + 32 = 4 * 128.
constexpr int producer_registers = 32, consumer_registers = 160;

template <int D>
struct Shape;
template <>
struct Shape<128> {
  static constexpr int Bc = 64, stages = 4;  // a thread has 64 registers of O, 32 of S, 16 of P; 225 KB
  static constexpr bool turns = false, polynomial = false;
};
template <>
struct Shape<64> {
  static constexpr int Bc = 128, stages = 4;  // 32 registers of O, 64 of S, 32 of P; 177 KB
  static constexpr bool turns = true, polynomial = true;
};

template <class T, int D>
struct Shared {
  static constexpr int Bc = Shape<D>::Bc, stages = Shape<D>::stages;
  T q[2][consumers][wgmma_rows * D];  // each part in D / 64 pages of 128 bytes a row, swizzled; later O
  T k[stages][Bc * D], v[stages][Bc * D];
  int index[2];         // in the list, of the tile that each Q belongs to
  Mbarrier drawn[2];    // block 1: the index is there
  Mbarrier q_empty[2];  // block 0: O of both blocks has left
  Mbarrier q_full[2], o_full[2];
  Mbarrier k_full[stages], k_empty[stages], v_full[stages], v_empty[stages];
};

// Where a consumer's part of a tile begins.
__device__ int first_row_of(Tile tile, int consumer, int rank) {
  return tile.i0 + wgmma_rows * (cluster * consumer + rank);
}

// The producer of block 0 tells both blocks the index of the next tile, and that of block 1 gets to know it. Consumers
// learn of it by q_full.
template <class T, int D, class Queries>
__device__ void announce(Shared<T, D>& smem, int& index, int rank, const Queries& q) {
  if (rank == 0) {
    mbarrier_wait(&smem.q_empty[q.place], q.parity ^ 1);
    for (int block = 0; block < cluster; block++) *map_shared(&smem.index[q.place], block) = index;
    mbarrier_arrive_cluster(&smem.drawn[q.place], 1);
  } else {
    mbarrier_wait_cluster(&smem.drawn[q.place], q.parity);
    index = smem.index[q.place];
  }
}

// The others' next tile; false if none is left.
template <class T, int D, class Queries>
__device__ bool next(Shared<T, D>& smem, const TileList<Br>& tiles, Tile& tile, const Queries& q) {
  mbarrier_wait(&smem.q_full[q.place], q.parity);
  return tiles.get(tile, smem.index[q.place]);
}

// Starts a block's copies of a tile: its parts of Q, and half of K and V for both blocks. One thread. A half is 64 x
// 64: at D = 128 one page of all keys, at D = 64 half of the keys.
template <class T, int D, class Keys, class Queries>
__device__ __forceinline__ void load(Shared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const Problem& p, Tile tile, int rank, Keys& ring,
                                     Queries& q) {
  constexpr int Bc = Shape<D>::Bc, kv_bytes = Bc * D * sizeof(T);
  constexpr uint16_t both = 3;
  mbarrier_arrive_expect_tx(&smem.q_full[q.place], consumers * wgmma_rows * D * sizeof(T));
  for (int consumer = 0; consumer < consumers; consumer++)
    tensor_load(smem.q[q.place][consumer], q_map, &smem.q_full[q.place], 0, first_row_of(tile, consumer, rank), 0,
                tile.head);
  const int half = rank * (Bc * D / 2), page = D == 128 ? rank : 0, first_key = D == 128 ? 0 : rank * (Bc / 2);
  const int tiles = key_tiles<Bc>(p, tile.i0 + Br - 1), kv_head = p.kv_head(tile.head);
#pragma unroll 1
  for (int j = 0; j < tiles; j++, ring.advance()) {
    mbarrier_wait(&smem.k_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.k_full[ring.place], kv_bytes);
    tensor_load_multicast(smem.k[ring.place] + half, k_map, &smem.k_full[ring.place], both, 0, j * Bc + first_key, page,
                          kv_head);
    mbarrier_wait(&smem.v_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.v_full[ring.place], kv_bytes);
    tensor_load_multicast(smem.v[ring.place] + half, v_map, &smem.v_full[ring.place], both, 0, j * Bc + first_key, page,
                          kv_head);
  }
}

// A consumer's 64 rows of a tile.
template <class T, int D, class Keys, class Queries>
__device__ __forceinline__ void attend(Shared<T, D>& smem, const Problem& p, Tile tile, int rank, Keys& ring,
                                       Queries& q, float* lse) {
  constexpr int Bc = Shape<D>::Bc;
  constexpr bool turns = Shape<D>::turns, polynomial = Shape<D>::polynomial;
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0) * 16;  // the first of the warp's 16 rows
  const int tiles = key_tiles<Bc>(p, tile.i0 + Br - 1);
  const int own_row = first_row_of(tile, consumer, rank);
  const int own_tiles = own_row < p.seq_q ? key_tiles<Bc>(p, own_row + wgmma_rows - 1) : 1;
  const int first_row = own_row + warp_row, warp_first = p.visible_keys(first_row);
  const float scale_log2 = p.scale * log2_e;
  T* q_rows = smem.q[q.place][consumer];

  float s_reg[1][Bc / 8][4], o_reg[1][D / 8][4] = {};
  uint32_t p_reg[1][Bc / 16][4];
  lazy_softmax::Rows<1> rows;
  const Watched state = {int64_t(tile.head) * p.seq_q + first_row, 0, p.seq_q - first_row, D};
  const auto scores = [&](int j) { return Watched{state.row, j * Bc, state.rows, p.seq_k - j * Bc}; };
  // x in place of S, and whether m has to rise for it
  const auto make_x = [&](int j) {
    watch_step("2. x = S - m; m rises only if it must; P = 2^x");
    watch("S", scores(j), s_reg, p.scale);
    const bool above = lazy_softmax::subtract_max(s_reg, rows, scale_log2);
    if ((j + 1) * Bc > warp_first)  // across the diagonal, or the end of the keys
      lazy_softmax::hide(s_reg, [&](int i) { return p.visible_keys(first_row + i) - j * Bc; });
    return above;
  };
  // This warp no longer needs the buffer that the mbarrier guards, which both blocks fill.
  const auto release = [&](Mbarrier& empty) {
    if (lane < cluster) mbarrier_arrive_cluster_read(&empty, lane);
  };
  const auto wait_for_turn = [&] {
    if constexpr (turns) named_barrier_sync(1 + consumer, turn_threads);  // no result depends on it
  };
  const auto pass_turn = [&] {
    if constexpr (turns) named_barrier_arrive(1 + (consumer + 1) % consumers, turn_threads);
  };

  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  watch_step("1. S = Q K^T");
  wait_for_turn();
  wgmma_fence();
  start_product<wgmma_rows, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
  wgmma_wait<0>(s_reg);
  pass_turn();
  release(smem.k_empty[ring.place]);
  if (make_x(0)) lazy_softmax::raise(s_reg, o_reg, rows, state);
  lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(0));

#pragma unroll 1
  for (int j = 1; j < own_tiles; j++) {
    const Keys before = ring;
    ring.advance();
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    mbarrier_wait(&smem.v_full[before.place], before.parity);
    watch_step("1. S = Q K^T; beside it O += P V of the tile before");
    wait_for_turn();
    wgmma_fence();
    start_product<wgmma_rows, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
    start_sum<D, Bc>(o_reg, p_reg, smem.v[before.place]);
    wgmma_wait<1>(s_reg);
    pass_turn();
    if constexpr (turns)
      mbarrier_wait(&smem.k_full[ring.place], ring.parity);  // over: keeps x behind it; no result depends on it
    release(smem.k_empty[ring.place]);
    const bool above = make_x(j);
    float correction[1][2] = {{1, 1}};
    if (above) lazy_softmax::raise_max(s_reg, rows, correction, state);
    if (polynomial && above) lazy_softmax::keep_nan(s_reg, rows);
    lazy_softmax::watch_rows(state, rows);
    lazy_softmax::exponentiate_in_place<polynomial>(s_reg, rows, scores(j));  // beside a product, in machine code too
    // What stands before this wait stays before the one that follows, and with turns all exponentials too, since this
    // wait needs their sums: ptxas does not know that no -l is 1
    const bool never = turns && (rows.minus_l[0][0] == 1 || rows.minus_l[0][1] == 1);
    mbarrier_wait(&smem.v_full[ring.place], ring.parity ^ unsigned(never));  // no result depends on it
    wgmma_wait<0>(o_reg);
    release(smem.v_empty[before.place]);
    if (above) lazy_softmax::rescale(o_reg, correction);
    watch("O", state, o_reg);
    swizzled_tile::round_fragments<T, Bc>(p_reg, s_reg);
  }

  mbarrier_wait(&smem.v_full[ring.place], ring.parity);
  watch_step("3. O += P V");
  wgmma_fence();
  start_sum<D, Bc>(o_reg, p_reg, smem.v[ring.place]);
  wgmma_wait<0>(o_reg);
  watch_rows(state, rows, o_reg);
  release(smem.v_empty[ring.place]);
  ring.advance();

  // Tiles that only the other warpgroups compute
#pragma unroll 1
  for (int j = own_tiles; j < tiles; j++, ring.advance()) {
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    release(smem.k_empty[ring.place]);
    mbarrier_wait(&smem.v_full[ring.place], ring.parity);
    release(smem.v_empty[ring.place]);
    wait_for_turn();
    pass_turn();
  }

  watch_step("O / l and LSE");
  const int g = lane / 4;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = first_row + 8 * h + g;
    const float l = rows.l(0, h), inverse = l == 0 ? 0 : 1 / l;  // l = 0: the row sees no key
    if (lane % 4 == 0 && row < p.seq_q) lse[size_t(tile.head) * p.seq_q + row] = (rows.m[0][h] + log2_approx(l)) * ln_2;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      for (int c = 0; c < 2; c++) o_reg[0][n][2 * h + c] *= inverse;
  }
  uint32_t o_half[1][D / 16][4];
  swizzled_tile::round_fragments<T, D>(o_half, o_reg);
  swizzled_tile::store_fragments<wgmma_rows, D>(q_rows + warp_row * page_row, o_half, 0);
  fence_proxy_async();
  __syncwarp();  // the warp's rows of O are in shared memory
  if (lane == 0) mbarrier_arrive(&smem.o_full[q.place]);
}

template <class T, int D>
__global__ void __launch_bounds__(threads, 1)
    forward(const __grid_constant__ TensorMap q_map,  // of Q [B * H, D / 64, Nq, 64], in boxes of a consumer's rows
            const __grid_constant__ TensorMap k_map,  // of K [B * Hkv, D / 64, Nk, 64], in boxes of 64 rows of a page
            const __grid_constant__ TensorMap v_map,  // of V, likewise
            const __grid_constant__ TensorMap o_map,  // of O, as of Q
            Problem p, TileList<Br> tiles,
            int* taken,  // how many of the list, without the first of each cluster; null if those are all
            float* lse)  // [B, H, Nq]
{
  constexpr int stages = Shape<D>::stages;
  Shared<T, D>& smem = *dynamic_shared<Shared<T, D>, tile_alignment>();
  const int rank = int(cluster_rank());
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) {
      mbarrier_init(&smem.drawn[i], 1);
      mbarrier_init(&smem.q_full[i], 1);
      mbarrier_init(&smem.q_empty[i], cluster);
      mbarrier_init(&smem.o_full[i], 4 * consumers);  // their warps
    }
    for (int i = 0; i < stages; i++) {
      mbarrier_init(&smem.k_full[i], 1);
      mbarrier_init(&smem.v_full[i], 1);
      mbarrier_init(&smem.k_empty[i], 4 * consumers * cluster);
      mbarrier_init(&smem.v_empty[i], 4 * consumers * cluster);
    }
    fence_mbarrier_init();
  }
  grid_dependency_wait();  // the kernel before this one has set the count, in global memory
  cluster_sync();          // the mbarriers of both blocks are there

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  Ring<stages> ring;
  Ring<2> q;
  Tile tile;
  if (warpgroup == consumers) {
    setmaxnreg_dec<producer_registers>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp == 0 && elect_one()) {
      int index = blockIdx.x / cluster;
      for (;; q.advance()) {
        announce(smem, index, rank, q);
        if (!tiles.get(tile, index)) break;
        load(smem, q_map, k_map, v_map, p, tile, rank, ring, q);
        if (rank == 0) index = taken ? gridDim.x / cluster + atomicAdd(taken, 1) : INT_MAX;
      }
      mbarrier_arrive(&smem.q_full[q.place]);  // no tile is left
    } else if (warp == 1 && elect_one()) {
      for (; next(smem, tiles, tile, q); q.advance()) {
        mbarrier_wait(&smem.o_full[q.place], q.parity);
        for (int consumer = 0; consumer < consumers; consumer++)
          if (const int row = first_row_of(tile, consumer, rank); row < p.seq_q)
            tensor_store(o_map, smem.q[q.place][consumer], 0, row, 0, tile.head);
        bulk_commit();
        bulk_wait_read<0>();  // O has been read: its place may be filled again, and the block may end
        mbarrier_arrive_cluster_read(&smem.q_empty[q.place], 0);
      }
    }
  } else {
    setmaxnreg_inc<consumer_registers>();
    constexpr bool turns = Shape<D>::turns;
    if (turns && warpgroup == consumers - 1) named_barrier_arrive(1, turn_threads);  // the first consumer's turn
    for (; next(smem, tiles, tile, q); q.advance()) attend(smem, p, tile, rank, ring, q, lse);
    if (turns && warpgroup == 0) named_barrier_sync(1, turn_threads);  // takes the last turn; no result depends on it
  }
  cluster_sync();  // nobody copies to this block's shared memory, or arrives there, any more
}

__global__ void take_none(int* taken) {
  watch_step("no tile is taken yet");
  *taken = 0;
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
    const TileList<Br> tiles = attention::all_tiles<Br>(p, attention::heads_that_run_together(p));
    const int all = tiles.heads * tiles.row_tiles, clusters = std::min(std::max(1, multiprocessors() / cluster), all);
    int* const taken = all == clusters ? nullptr : static_cast<int*>(args.workspace);
    if (taken) launch(take_none, {1, 1, 0, stream}, taken);
    LaunchConfig config(unsigned(clusters * cluster), threads, sizeof(Shared<T, D>), stream);
    config.cluster = cluster;
    launch_grid(forward<T, D>, config, taken ? Blocks::dependent : Blocks::apart,
                tile_map<D>(q, heads, p.seq_q, wgmma_rows, p.head_dim),
                tile_map<D>(k, kv_heads, p.seq_k, 64, p.head_dim, 1),
                tile_map<D>(v, kv_heads, p.seq_k, 64, p.head_dim, 1),
                tile_map<D>(o, heads, p.seq_q, wgmma_rows, p.head_dim), p, tiles, taken, args.lse);
  });
}

constexpr attention::Forward unpadded = {attention::not_for_hopper_to_256, [](const Problem&) { return sizeof(int); },
                                         run, true};

}  // namespace

extern const attention::Rung clusters;
constinit const attention::Rung clusters = {
    .name = "clusters",
    .idea = "two thread blocks share each tile of K and V: half of it comes to both by one copy",
    .forward = attention::padded<unpadded, attention::next_in_pages, wide_forward>};

}  // namespace hopper
