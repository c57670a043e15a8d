// Chapter 10, rung 20, fitted: tiles of 192, 128 or 64 rows, whichever the number of rows fills best.
//
// A thread block stays as long as the kernel runs and takes tile after tile, each of 192, 128 or 64 query rows of one
// head, with a consumer warpgroup for every 64 of them, from Q to O. One more warpgroup is the producer, of which two
// warps have work. What each does, waits for, and signals (->):
//
//   producer, warp 0   which tile, and its Q  waits for q_empty                      -> q_full
//                      K and V, tile by tile  waits for k_empty, v_empty             -> k_full, v_full
//   producer, warp 1   O to memory            waits for o_full                       -> q_empty
//   consumers          the first S            waits for q_full, k_full               -> k_empty
//                      S(j), then O += P V(j-1) starts
//                      x = scale log2(e) S(j) - m, and P = 2^x, while P V(j-1) runs
//                      O follows m                                                   -> v_empty
//                      O / l                  to shared memory, where Q was          -> o_full
//
// What changed since ahead: the number of consumers is a parameter of the kernel, and the host chooses it. Three do
// most with each tile of K and V. But 32 heads of 1024 rows are 192 tiles of 192 rows, two rounds of 132
// multiprocessors with the second one half empty. With 128 rows there are 256 tiles: two rounds, almost full and
// shorter. Head dims above 128 go to another kernel, in wide/forward.cu.
//
// A diff to 17_ahead.cu shows three things more. The order of the tiles is that of rounds, which ran ahead's kernel
// with it. With one consumer, and with two at D = 128, P = 2^x stands behind the wait for P V again, as in narrow,
// since there it does not pay to keep it in fp32. And `prompt`, a `taken` that is null, and grid_dependency_wait are
// for rung 23, which runs this kernel too: here `prompt` is false, and there is nothing to wait for.
//
// Expected limit: as for ahead, and with few tiles the start and the end of the kernel, about 6 us.
#include <algorithm>
#include <climits>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/dependent_launch.h"
#include "device/elect.h"
#include "device/lazy_softmax.h"
#include "device/limits.h"
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

namespace hopper {

extern const attention::Forward wide_forward;  // for D = 192 and 256

using attention::ForwardArgs;
using attention::Problem;

namespace {

using attention::key_tiles;
using attention::Tile;
using attention::TileList;
using namespace warpgroup_tile;

template <int consumers>
constexpr int threads = warpgroup_threads*(consumers + 1);
template <int consumers>
constexpr int Br = wgmma_rows* consumers;  // query rows of a tile, wgmma_rows to a consumer

// 65536 registers are 128 for each of 512 threads, the producer's among them: 3 * 160 + 32 = 4 * 128. With two
// consumers they are 168 for each of 384, in multiples of 8: 24 + 2 * 240 = 3 * 168. With one, every thread has as many
// as it can.
template <int consumers>
constexpr int producer_registers = consumers == 3 ? 32 : 24;
template <int consumers>
constexpr int consumer_registers = consumers == 3 ? 160 : 240;

template <int D>
struct Shape;
template <>
struct Shape<128> {
  static constexpr int Bc = 64, stages = 4;  // a thread has 64 registers of O, 32 of S, 16 of P; at most 225 KB
};
template <>
struct Shape<64> {
  static constexpr int Bc = 128, stages = 4;  // 32 registers of O, 64 of S, 32 of P; at most 177 KB
};

template <class T, int D, int consumers>
struct Shared {
  static constexpr int Br = hopper::Br<consumers>, Bc = Shape<D>::Bc, stages = Shape<D>::stages;
  T q[2][Br * D];  // each tile in D / 64 pages of 128 bytes a row, swizzled; later O
  T k[stages][Bc * D], v[stages][Bc * D];
  int index[2];  // in the list, of the tile that each Q belongs to
  Mbarrier q_full[2], q_empty[2], o_full[2];
  Mbarrier k_full[stages], k_empty[stages], v_full[stages], v_empty[stages];
};

// Tells the others the index of the next tile, which q_full will say is there. One thread.
template <class T, int D, int consumers, class Queries>
__device__ void announce(Shared<T, D, consumers>& smem, int index, const Queries& q) {
  mbarrier_wait(&smem.q_empty[q.place], q.parity ^ 1);
  smem.index[q.place] = index;
}

// The others' next tile; false if none is left.
template <class T, int D, int consumers, class Queries>
__device__ bool next(Shared<T, D, consumers>& smem, const TileList<Br<consumers>>& tiles, Tile& tile,
                     const Queries& q) {
  mbarrier_wait(&smem.q_full[q.place], q.parity);
  return tiles.get(tile, smem.index[q.place]);
}

// Starts the copies of a tile. One thread.
template <class T, int D, int consumers, class Keys, class Queries>
__device__ __forceinline__ void load(Shared<T, D, consumers>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const Problem& p, Tile tile, Keys& ring, Queries& q) {
  constexpr int Br = hopper::Br<consumers>, Bc = Shape<D>::Bc, kv_bytes = Bc * D * sizeof(T);
  mbarrier_arrive_expect_tx(&smem.q_full[q.place], Br * D * sizeof(T));
  tensor_load(smem.q[q.place], q_map, &smem.q_full[q.place], 0, tile.i0, 0, tile.head);
  const int tiles = key_tiles<Bc>(p, tile.i0 + Br - 1), kv_head = p.kv_head(tile.head);
#pragma unroll 1
  for (int j = 0; j < tiles; j++, ring.advance()) {
    mbarrier_wait(&smem.k_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.k_full[ring.place], kv_bytes);
    tensor_load(smem.k[ring.place], k_map, &smem.k_full[ring.place], 0, j * Bc, 0, kv_head);
    mbarrier_wait(&smem.v_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.v_full[ring.place], kv_bytes);
    tensor_load(smem.v[ring.place], v_map, &smem.v_full[ring.place], 0, j * Bc, 0, kv_head);
  }
}

// A consumer's 64 rows of a tile.
template <class T, int D, int consumers, class Keys, class Queries>
__device__ __forceinline__ void attend(Shared<T, D, consumers>& smem, const Problem& p, Tile tile, Keys& ring,
                                       Queries& q, float* lse) {
  constexpr int Br = hopper::Br<consumers>, Bc = Shape<D>::Bc;
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 rows
  const int tiles = key_tiles<Bc>(p, tile.i0 + Br - 1);
  const int own_tiles =
      tile.i0 + wgmma_rows * consumer < p.seq_q ? key_tiles<Bc>(p, tile.i0 + wgmma_rows * (consumer + 1) - 1) : 1;
  const int first_row = tile.i0 + warp_row, warp_first = p.visible_keys(first_row);
  const float scale_log2 = p.scale * log2_e;
  const T* q_rows = smem.q[q.place] + wgmma_rows * consumer * page_row;

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
    const Keys before = ring;
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
    // Beside the product P V. With two consumers it pays where exponentials take as long as the products, at D = 64
    if constexpr (consumers == 3 || (consumers == 2 && D == 64)) {
      float correction[1][2] = {{1, 1}};
      if (above) lazy_softmax::raise_max(s_reg, rows, correction, state);
      lazy_softmax::watch_rows(state, rows);
      lazy_softmax::exponentiate_in_place(s_reg, rows, scores(j));  // beside a product, in machine code too
      // What stands before this wait stays before the one that follows
      mbarrier_wait(&smem.v_full[ring.place], ring.parity);  // no result depends on it
      wgmma_wait<0>(o_reg);
      release(smem.v_empty[before.place]);
      if (above) lazy_softmax::rescale(o_reg, correction);
      watch("O", state, o_reg);
      swizzled_tile::round_fragments<T, Bc>(p_reg, s_reg);
    } else {
      wgmma_wait<0>(o_reg);
      release(smem.v_empty[before.place]);
      if (above) lazy_softmax::raise(s_reg, o_reg, rows, state);
      watch_rows(state, rows, o_reg);
      lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
    }
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
  swizzled_tile::round_fragments<T, D>(o_half, o_reg);
  swizzled_tile::store_fragments<Br, D>(smem.q[q.place] + warp_row * page_row, o_half, 0);
  fence_proxy_async();
  __syncwarp();  // the warp's rows of O are in shared memory
  release(smem.o_full[q.place]);
}

template <class T, int D, int consumers>
__global__ void __launch_bounds__(threads<consumers>, 1)
    forward(const __grid_constant__ TensorMap q_map,  // of Q [B * H, D / 64, Nq, 64], in boxes of Br rows
            const __grid_constant__ TensorMap k_map,  // of K [B * Hkv, D / 64, Nk, 64], in boxes of Bc rows
            const __grid_constant__ TensorMap v_map,  // of V, likewise
            const __grid_constant__ TensorMap o_map,  // of O, as of Q
            Problem p, TileList<Br<consumers>> tiles,
            int* taken,  // how many of the list, without the first of each thread block; null if those are all
            float* lse)  // [B, H, Nq]
{
  constexpr int stages = Shape<D>::stages;
  Shared<T, D, consumers>& smem = *dynamic_shared<Shared<T, D, consumers>, tile_alignment>();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) {
      mbarrier_init(&smem.q_full[i], 1);
      mbarrier_init(&smem.q_empty[i], 1);
      mbarrier_init(&smem.o_full[i], 4 * consumers);  // their warps
    }
    for (int i = 0; i < stages; i++) {
      mbarrier_init(&smem.k_full[i], 1);
      mbarrier_init(&smem.v_full[i], 1);
      mbarrier_init(&smem.k_empty[i], 4 * consumers);
      mbarrier_init(&smem.v_empty[i], 4 * consumers);
    }
    fence_mbarrier_init();
  }
  grid_dependency_wait();  // what the kernel before this one wrote is in global memory: the count, or Q, K and V
  __syncthreads();         // the mbarriers are there

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  Ring<stages> ring;
  Ring<2> q;
  Tile tile;
  if (warpgroup == consumers) {
    if constexpr (consumers > 1) setmaxnreg_dec<producer_registers<consumers>>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp == 0 && elect_one()) {
      int index = blockIdx.x;
      for (; tiles.get(tile, index); index = taken ? gridDim.x + atomicAdd(taken, 1) : INT_MAX, q.advance()) {
        announce(smem, index, q);
        load(smem, q_map, k_map, v_map, p, tile, ring, q);
      }
      announce(smem, index, q);
      mbarrier_arrive(&smem.q_full[q.place]);  // no tile is left
    } else if (warp == 1 && elect_one()) {
      for (; next(smem, tiles, tile, q); q.advance()) {
        mbarrier_wait(&smem.o_full[q.place], q.parity);
        tensor_store(o_map, smem.q[q.place], 0, tile.i0, 0, tile.head);
        bulk_commit();
        bulk_wait_read<0>();  // O has been read: its place may be filled again, and the block may end
        mbarrier_arrive(&smem.q_empty[q.place]);
      }
    }
  } else {
    if constexpr (consumers > 1) setmaxnreg_inc<consumer_registers<consumers>>();
    for (; next(smem, tiles, tile, q); q.advance()) attend(smem, p, tile, ring, q, lse);
  }
}

__global__ void take_none(int* taken) {
  grid_dependency_wait();  // nobody counts any more in the kernel before this one
  watch_step("no tile is taken yet");
  *taken = 0;
}

}  // namespace

// The number of consumers with which the tiles of all rows should be done first.
int consumers_for(const Problem& p) {
  const auto ends = [&](int consumers) {
    // A tile's time, as a share of that with three consumers. With one it is more than a third, since K and V come to
    // shared memory as often.
    const double share = consumers == 3 ? 1 : consumers == 2 ? 0.8 : 0.6;
    return attention::rounds_of_tiles(p, wgmma_rows * consumers) * share;
  };
  int best = 3;
  for (int consumers = 2; consumers > 0; consumers--)
    if (ends(consumers) < ends(best)) best = consumers;
  return best;
}

// `prompt`: take_none is launched only where it is needed, and each kernel starts while the one before it ends.
void forward_fitted(const Problem& p, const ForwardArgs& args, cudaStream_t stream, bool prompt) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto with = [&]<int consumers>() {
      constexpr int Br = hopper::Br<consumers>, Bc = Shape<D>::Bc;
      const auto [q, k, v, o] = attention::tensors_of<T>(args);
      const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
      const TileList<Br> tiles = attention::all_tiles<Br>(p, attention::heads_that_run_together(p));
      const int all = tiles.heads * tiles.row_tiles, blocks = std::min(multiprocessors(), all);
      int* const taken = prompt && all == blocks ? nullptr : static_cast<int*>(args.workspace);
      const Blocks how = prompt ? Blocks::dependent : Blocks::apart;
      if (taken) launch_grid(take_none, {1, 1, 0, stream}, how, taken);
      launch_grid(forward<T, D, consumers>,
                  {unsigned(blocks), threads<consumers>, sizeof(Shared<T, D, consumers>), stream}, how,
                  tile_map<D>(q, heads, p.seq_q, Br, p.head_dim), tile_map<D>(k, kv_heads, p.seq_k, Bc, p.head_dim),
                  tile_map<D>(v, kv_heads, p.seq_k, Bc, p.head_dim), tile_map<D>(o, heads, p.seq_q, Br, p.head_dim), p,
                  tiles, taken, args.lse);
    };
    switch (consumers_for(p)) {
      case 1:
        return with.template operator()<1>();
      case 2:
        return with.template operator()<2>();
      default:
        return with.template operator()<3>();
    }
  });
}

namespace {

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) { forward_fitted(p, args, stream, false); }

constexpr attention::Forward unpadded = {attention::not_for_hopper_to_256, [](const Problem&) { return sizeof(int); },
                                         run, true};

}  // namespace

extern const attention::Rung fitted;
constinit const attention::Rung fitted = {
    .name = "fitted",
    .idea = "tiles of 192, 128 or 64 rows, whatever fills the multiprocessors best",
    .forward = attention::padded<unpadded, attention::next_in_pages, wide_forward>};

}  // namespace hopper
