// Chapter 10, head dims above 128: one more tile shape, in a kernel of its own.
//
// A thread block owns Br = 128 query rows of one head. Each of two consumer warpgroups computes 64 of them, from Q to
// O; the third warpgroup is the producer, of which one thread has work. What each does, waits for, and signals (->):
//
//   producer           Q                                                             -> q_full
//                      K and V, tile by tile  waits for k_empty, v_empty             -> k_full, v_full
//   consumers          the first S            waits for q_full, k_full               -> k_empty
//                      S(j), then O += P V(j-1) starts
//                      x = scale log2(e) S(j) - m while P V(j-1) runs                -> v_empty
//                      P = 2^x
//                      O / l                  to memory, by way of Q's place
//
// This is 5_overlap for D = 192 and 256. At 256 a consumer's rows of O take 128 registers of each of its threads. So
// there are two consumers, whose threads can have 240, and tiles of 80 keys, or 112 at D = 192. Head dims in
// between are treated as in 7_stored, and O leaves by a tensor map, too, 16 rows of a page at a time. No tile is
// prefetched for the next rows: Q, K and V fill the shared memory. A tile's products are twice as long as at D = 128,
// and hide more of what is around them.
//
// Tensors lie as their strides say (maps.h).
//
// Expected limit: tensor cores that wait while both consumers exponentiate; two are too few to always fill the gap.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/dependent_launch.h"
#include "device/elect.h"
#include "device/lazy_softmax.h"
#include "device/math.h"
#include "device/mbarrier.h"
#include "device/numeric.h"
#include "device/proxy_fence.h"
#include "device/ring.h"
#include "device/setmaxnreg.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/warpgroup_tile.h"
#include "device/watch.h"
#include "maps.h"

namespace hopper {
namespace {

using attention::ForwardArgs;
using attention::key_tiles;
using attention::Problem;
using attention::Tile;
using wide::load_tile;
using wide::map_of;
using namespace warpgroup_tile;

constexpr int stages = 2;
constexpr int consumers = 2, threads = warpgroup_threads * (consumers + 1);
constexpr int Br = wgmma_rows * consumers;  // query rows of a thread block, wgmma_rows to a consumer

// 65536 registers are 168 for each of 384 threads, in multiples of 8: 24 + 2 * 240 = 3 * 168.
constexpr int producer_registers = 24, consumer_registers = 240;

// Keys of a tile: as many as there is shared memory for
template <int D>
constexpr int keys = D > 192 ? 80 : 112;  // 225 KB, 217 KB

template <class T, int D>
struct Shared {
  static constexpr int Bc = keys<D>;
  T q[Br * D];  // each tile in D / 64 pages of 128 bytes a row, swizzled; later O
  T k[stages][Bc * D], v[stages][Bc * D];
  Mbarrier q_full, k_full[stages], k_empty[stages], v_full[stages], v_empty[stages];
};

// Starts the copies of a tile. One thread.
template <class T, int D>
__device__ __forceinline__ void load(Shared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const Problem& p, Tile tile) {
  constexpr int Bc = keys<D>, kv_bytes = Bc * D * sizeof(T);
  mbarrier_arrive_expect_tx(&smem.q_full, Br * D * sizeof(T));
  load_tile(smem.q, q_map, &smem.q_full, tile.i0, tile.head, p.heads);
  const int tiles = key_tiles<Bc>(p, tile.i0 + Br - 1), kv_head = p.kv_head(tile.head);
  Ring<stages> ring;
#pragma unroll 1
  for (int j = 0; j < tiles; j++, ring.advance()) {
    mbarrier_wait(&smem.k_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.k_full[ring.place], kv_bytes);
    load_tile(smem.k[ring.place], k_map, &smem.k_full[ring.place], j * Bc, kv_head, p.kv_heads);
    mbarrier_wait(&smem.v_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.v_full[ring.place], kv_bytes);
    load_tile(smem.v[ring.place], v_map, &smem.v_full[ring.place], j * Bc, kv_head, p.kv_heads);
  }
}

// A consumer's 64 rows.
template <class T, int D>
__device__ __forceinline__ void attend(Shared<T, D>& smem, const Problem& p, Tile tile, const TensorMap& o_map,
                                       float* lse) {
  constexpr int Bc = keys<D>;
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 rows
  const int tiles = key_tiles<Bc>(p, tile.i0 + Br - 1);
  const int own_tiles =
      tile.i0 + wgmma_rows * consumer < p.seq_q ? key_tiles<Bc>(p, tile.i0 + wgmma_rows * (consumer + 1) - 1) : 1;
  const int first_row = tile.i0 + warp_row, warp_first = p.visible_keys(first_row);
  const float scale_log2 = p.scale * log2_e;
  T* q_rows = smem.q + wgmma_rows * consumer * page_row;
  Ring<stages> ring;

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
  // This warp no longer needs the buffer that the mbarrier guards.
  const auto release = [&](Mbarrier& empty) {
    if (lane == 0) mbarrier_arrive(&empty);
  };

  mbarrier_wait(&smem.q_full, 0);
  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  watch_step("1. S = Q K^T");
  wgmma_fence();
  start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
  wgmma_wait<0>(s_reg);
  release(smem.k_empty[ring.place]);
  if (make_x(0)) lazy_softmax::raise(s_reg, o_reg, rows, state);
  lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(0));

#pragma unroll 1
  for (int j = 1; j < own_tiles; j++) {
    const Ring<stages> before = ring;
    ring.advance();
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    mbarrier_wait(&smem.v_full[before.place], before.parity);
    watch_step("1. S = Q K^T; beside it O += P V of the tile before");
    wgmma_fence();
    start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
    start_sum<D, Bc>(o_reg, p_reg, smem.v[before.place]);
    wgmma_wait<1>(s_reg);
    release(smem.k_empty[ring.place]);
    const bool above = make_x(j);
    wgmma_wait<0>(o_reg);
    release(smem.v_empty[before.place]);
    if (above) lazy_softmax::raise(s_reg, o_reg, rows, state);
    watch_rows(state, rows, o_reg);
    lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
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
  }

  watch_step("O / l and LSE");
  // O through shared memory, in the rows of Q that no other warp reads.
  watch_step("O / l and LSE");
  const int g = lane / 4;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = first_row + 8 * h + g;
    const float l = rows.l(0, h), inverse = l > 0 ? 1 / l : 0;  // l = 0: the row sees no key
    if (lane % 4 == 0 && row < p.seq_q) lse[size_t(tile.head) * p.seq_q + row] = (rows.m[0][h] + log2_approx(l)) * ln_2;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      for (int c = 0; c < 2; c++) o_reg[0][n][2 * h + c] *= inverse;
  }
  uint32_t o_half[1][D / 16][4];
  T* const o_rows = smem.q + warp_row * page_row;
  swizzled_tile::round_fragments<T, D>(o_half, o_reg);
  swizzled_tile::store_fragments<Br, D>(o_rows, o_half, 0);
  fence_proxy_async();
  __syncwarp();  // the warp's rows of O are in shared memory
  if (lane == 0) {
    for (int page = 0; page < D / 64; page++)
      tensor_store(o_map, o_rows + page * Br * 64, 0, first_row, page, tile.head % p.heads, tile.head / p.heads);
    bulk_commit();
    bulk_wait_read<0>();  // O has been read, and the block may end
  }
}

template <class T, int D>
__global__ void __launch_bounds__(threads, 1)
    forward(const __grid_constant__ TensorMap q_map,  // of Q [B, H, D / 64, Nq, 64], in boxes of Br rows
            const __grid_constant__ TensorMap k_map,  // of K [B, Hkv, D / 64, Nk, 64], in boxes of Bc rows
            const __grid_constant__ TensorMap v_map,  // of V, likewise
            const __grid_constant__ TensorMap o_map,  // of O, as of Q, in boxes of 16 rows of a page
            Problem p, int round_heads,
            float* lse)  // [B, H, Nq]
{
  Shared<T, D>& smem = *dynamic_shared<Shared<T, D>, tile_alignment>();
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.q_full, 1);
    for (int i = 0; i < stages; i++) {
      mbarrier_init(&smem.k_full[i], 1);
      mbarrier_init(&smem.v_full[i], 1);
      mbarrier_init(&smem.k_empty[i], 4 * consumers);  // their warps
      mbarrier_init(&smem.v_empty[i], 4 * consumers);
    }
    fence_mbarrier_init();
  }
  grid_dependency_wait();  // what the kernel before this one wrote is in global memory
  __syncthreads();         // the mbarriers are there

  const Tile tile = attention::tile_of_block<Br>(p, round_heads);
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  if (warpgroup == consumers) {
    setmaxnreg_dec<producer_registers>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp == 0 && elect_one()) load(smem, q_map, k_map, v_map, p, tile);
  } else {
    setmaxnreg_inc<consumer_registers>();
    attend(smem, p, tile, o_map, lse);
  }
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<192, 256>(p, [&]<class T, int D>() {
    constexpr int Bc = keys<D>;
    const auto [q, k, v, o] = attention::views_of<T>(p, args);
    const unsigned blocks = p.batch * p.heads * ceil_div(p.seq_q, Br);
    launch_dependent(
        forward<T, D>, {blocks, threads, sizeof(Shared<T, D>), stream},
        map_of<D>(p, q, p.heads, p.seq_q, Br, p.head_dim), map_of<D>(p, k, p.kv_heads, p.seq_k, Bc, p.head_dim),
        map_of<D>(p, v, p.kv_heads, p.seq_k, Bc, p.head_dim), map_of<D>(p, o, p.heads, p.seq_q, 16, p.head_dim, 1), p,
        attention::heads_that_run_together(p), args.lse);
  });
}

}  // namespace

extern const attention::Forward wide_forward;
constinit const attention::Forward wide_forward = {.unsupported = attention::not_for_hopper_to_256,
                                                   .workspace_bytes = attention::no_workspace,
                                                   .run = run,
                                                   .writes_lse = true,
                                                   .takes = attention::views};

}  // namespace hopper
