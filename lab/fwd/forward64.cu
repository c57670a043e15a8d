// Chapter 10, rung 24, late: at D = 64 the consumers take turns, and pass a turn on as soon as they have their S.
//
// For head dims up to 64; others have `prompt`. A thread block stays as long as the kernel runs and takes tile after
// tile, each Br = 192 query rows of one head. Each of three consumer warpgroups computes 64 rows of it, from Q to O;
// the fourth warpgroup is the producer, of which two warps have work. What each does, waits for, and signals (->):
//
//   producer, warp 0   which tile, and its Q  waits for q_empty                      -> q_full
//                      K and V, tile by tile  waits for k_empty, v_empty             -> k_full, v_full
//   producer, warp 1   O to memory            waits for o_full                       -> q_empty
//   consumers          the first S            waits for q_full, k_full, its turn     -> the next turn, k_empty
//                      S(j), then O += P V(j-1) starts, in its turn
//                      S(j) is there                                                 -> the next turn, k_empty
//                      x = scale log2(e) S(j) - m, and P = 2^x, while P V(j-1) runs
//                      O follows m                                                   -> v_empty
//                      O / l                  to shared memory, where Q was          -> o_full
//
// Named barrier 1 + c is consumer c's turn. Each consumer has as many turns with a tile as the tile has tiles of keys:
// one for the first S, one for each S(j) with P V(j-1), and those of the tiles of keys that only the other consumers
// compute. The last P V is outside of them.
//
// What changed since prompt: the turns, and always three consumers, as in 17_ahead.cu, beside which this file is best
// read. In 6_pingpong.cu a consumer passes its turn on once its products have started. The next one's products are then
// in the way of its own S, for which it waits. Here it keeps the turn until S is there. P V still runs then, and nobody
// waits for it: the tensor cores are not idle while the turn changes hands.
//
// Expected limit: as before, the exponentials, and each consumer's way through a tile: products, x, P.
#include <algorithm>
#include <climits>
#include <cmath>
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


namespace {

using attention::key_tiles;
using attention::Tile;
using attention::TileList;
using namespace warpgroup_tile;

constexpr int consumers = 3, threads = warpgroup_threads * (consumers + 1);
constexpr int Br = wgmma_rows * consumers;           // query rows of a tile, wgmma_rows to a consumer
constexpr int turn_threads = 2 * warpgroup_threads;  // who passes a turn on, and who waits for it

// 65536 registers are 128 for each of 512 threads. The producer gives most of its own away: 3 * 160 + 32 = 4 * 128.
constexpr int producer_registers = 32, consumer_registers = 160;

template <int D>
struct Shape;
template <>
struct Shape<64> {
  static constexpr int Bc = BC, stages = 4;  // a thread has 32 registers of O, 64 of S, 32 of P; 177 KB
};

template <class T, int D>
struct Shared {
  static constexpr int Bc = Shape<D>::Bc, stages = Shape<D>::stages;
  T q[2][Br * D];  // each tile in D / 64 pages of 128 bytes a row, swizzled; later O
  T k[stages][Bc * D], v[stages][Bc * D];
#ifdef ONES
  T ones[16 * 64];  // one page of 16 rows: column 0 is 1, all others 0
#endif
  int index[2];  // in the list, of the tile that each Q belongs to
  Mbarrier q_full[2], q_empty[2], o_full[2];
  Mbarrier k_full[stages], k_empty[stages], v_full[stages], v_empty[stages];
};

// Tells the others the index of the next tile, which q_full will say is there. One thread.
template <class T, int D, class Queries>
__device__ void announce(Shared<T, D>& smem, int index, const Queries& q) {
  mbarrier_wait(&smem.q_empty[q.place], q.parity ^ 1);
  smem.index[q.place] = index;
}

// The others' next tile; false if none is left.
template <class T, int D, class Queries>
__device__ bool next(Shared<T, D>& smem, const TileList<Br>& tiles, Tile& tile, const Queries& q) {
  mbarrier_wait(&smem.q_full[q.place], q.parity);
  return tiles.get(tile, smem.index[q.place]);
}

// Starts the copies of a tile. One thread.
template <class T, int D, class Keys, class Queries>
__device__ __forceinline__ void load(Shared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const Problem& p, Tile tile, Keys& ring, Queries& q) {
  constexpr int Bc = Shape<D>::Bc, kv_bytes = Bc * D * sizeof(T);
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

#ifdef ONES
#ifdef FP16
#define ONE_BITS 0x3c00u
#define TY "f16"
#else
#define ONE_BITS 0x3f80u
#define TY "bf16"
#endif
#define R4(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
__device__ __forceinline__ void wgmma72(float (&d)[9][4], const uint32_t (&a)[4], uint64_t b) {
  asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %41, 0;\nwgmma.mma_async.sync.aligned.m64n72k16.f32." TY "." TY
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35}, "
      "{%36, %37, %38, %39}, %40, accumulate, 1, 1, 1;\n}"
      : R4(0), R4(1), R4(2), R4(3), R4(4), R4(5), R4(6), R4(7), R4(8) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}
template <int depth, class T>
__device__ __forceinline__ void start_sum_ones(float (&sum)[1][9][4], const uint32_t (&a)[1][depth / 16][4], const T* v, const T* ones) {
  const uint64_t b_tile = wgmma_descriptor(v, int(shared_address(ones) - shared_address(v)));
  // a step further on, the page with ones is a step nearer
  constexpr uint64_t step_on = uint64_t(step_rows_bytes >> 4) - (uint64_t(step_rows_bytes >> 4) << 16);
#pragma unroll
  for (int step = 0; step < depth / 16; step++) wgmma72(sum[0], a[0][step], b_tile + step * step_on);
  wgmma_commit();
}
#endif

// A consumer's 64 rows of a tile.
template <bool polynomial, class T, int D, class Keys, class Queries>
__device__ __forceinline__ void attend(Shared<T, D>& smem, const Problem& p, Tile tile, Keys& ring, Queries& q,
                                       float* lse) {
  constexpr int Bc = Shape<D>::Bc;
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 rows
  const int tiles = key_tiles<Bc>(p, tile.i0 + Br - 1);
  const int own_tiles =
      tile.i0 + wgmma_rows * consumer < p.seq_q ? key_tiles<Bc>(p, tile.i0 + wgmma_rows * (consumer + 1) - 1) : 1;
  const int first_row = tile.i0 + warp_row, warp_first = p.visible_keys(first_row);
  const float scale_log2 = p.scale * log2_e;
  const T* q_rows = smem.q[q.place] + wgmma_rows * consumer * page_row;

#ifdef ONES
  constexpr int more = 1;
  const auto add_pv = [&](auto& o, const auto& pr, int place) {
    start_sum_ones<Bc>(o, pr, smem.v[place], smem.ones);
  };
#else
  constexpr int more = 0;
  const auto add_pv = [&](auto& o, const auto& pr, int place) { start_sum<D, Bc>(o, pr, smem.v[place]); };
#endif
  float s_reg[1][Bc / 8][4], o_reg[1][D / 8 + more][4] = {};
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
  const auto wait_for_turn = [&] { if (TURNS) named_barrier_sync(1 + consumer, turn_threads); };  // no result depends on it
  const auto pass_turn = [&] { if (TURNS) named_barrier_arrive(1 + (consumer + 1) % consumers, turn_threads); };

  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  watch_step("1. S = Q K^T");
  wait_for_turn();
  wgmma_fence();
  start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
  wgmma_wait<0>(s_reg);
  pass_turn();
  release(smem.k_empty[ring.place]);
  if (make_x(0)) lazy_softmax::raise(s_reg, o_reg, rows, state);
#ifdef FIRST
  for (int n = 0; n < Bc / 8; n++)
    for (int r = 0; r < 4; r++) s_reg[0][n][r] = exp2_approx(s_reg[0][n][r]);
  swizzled_tile::round_fragments<T, Bc>(p_reg, s_reg);
#else
  lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(0));
#endif

#pragma unroll 1
  for (int j = 1; j < own_tiles; j++) {
    const Keys before = ring;
    ring.advance();
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    mbarrier_wait(&smem.v_full[before.place], before.parity);
    watch_step("1. S = Q K^T; beside it O += P V of the tile before");
    wait_for_turn();
    wgmma_fence();
    start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
    add_pv(o_reg, p_reg, before.place);
#if TURNS == 2
    pass_turn();
#endif
    wgmma_wait<1>(s_reg);
#if TURNS == 1
    pass_turn();
#endif
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);  // over: keeps x behind it; no result depends on it
    release(smem.k_empty[ring.place]);
    const bool above = make_x(j);
    float correction[1][2] = {{1, 1}};
    if (above) lazy_softmax::raise_max(s_reg, rows, correction, state);
    if (polynomial && above) lazy_softmax::keep_nan(s_reg, rows);
    lazy_softmax::watch_rows(state, rows);
#if defined(ONES) && !defined(SUMS)
#pragma unroll
    for (int n = 0; n < Bc / 8; n++)
#pragma unroll
      for (int r = 0; r < 4; r++)
        s_reg[0][n][r] = polynomial && lazy_softmax::by_polynomial(n, r / 2) ? exp2_polynomial(s_reg[0][n][r]) : exp2_approx(s_reg[0][n][r]);
#ifdef PIN
    pin(s_reg[0]);
#endif
#else
    lazy_softmax::exponentiate_in_place<polynomial>(s_reg, rows, scores(j));
#endif  // beside a product, in machine code too
    // What stands before this wait stays before the one that follows, and so do all exponentials, since this wait needs
    // their sums: ptxas does not know that no -l is 1
#if defined(NEVER)
    float w = 0;
    for (int n = 0; n < Bc / 8; n++) w = fmaxf(w, s_reg[0][n][0]);
    const bool never = w == -1;
#elif defined(ONES) && !defined(SUMS)
    const bool never = false;
#else
    const bool never = rows.minus_l[0][0] == 1 || rows.minus_l[0][1] == 1;
#endif
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
  add_pv(o_reg, p_reg, ring.place);
  wgmma_wait<0>(o_reg);
#ifdef ONES
#pragma unroll
  for (int h = 0; h < 2; h++) rows.minus_l[0][h] -= o_reg[0][D / 8][2 * h];
#endif
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
    const float l = rows.l(0, h);
    const float inverse = l == 0 ? 0 : 1 / l;  // l = 0: the row sees no key
    if (lane % 4 == 0 && row < p.seq_q) lse[size_t(tile.head) * p.seq_q + row] = (rows.m[0][h] + log2_approx(l)) * ln_2;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      for (int c = 0; c < 2; c++) o_reg[0][n][2 * h + c] *= inverse;
  }
  uint32_t o_half[1][D / 16][4];
  float o_out[1][D / 8][4];
#pragma unroll
  for (int n = 0; n < D / 8; n++)
    for (int r = 0; r < 4; r++) o_out[0][n][r] = o_reg[0][n][r];
  swizzled_tile::round_fragments<T, D>(o_half, o_out);
  swizzled_tile::store_fragments<Br, D>(smem.q[q.place] + warp_row * page_row, o_half, 0);
  fence_proxy_async();
  __syncwarp();  // the warp's rows of O are in shared memory
  release(smem.o_full[q.place]);
}

template <bool polynomial, class T, int D>
__global__ void __launch_bounds__(threads, 1)
    forward(const __grid_constant__ TensorMap q_map,  // of Q [B * H, D / 64, Nq, 64], in boxes of Br rows
            const __grid_constant__ TensorMap k_map,  // of K [B * Hkv, D / 64, Nk, 64], in boxes of Bc rows
            const __grid_constant__ TensorMap v_map,  // of V, likewise
            const __grid_constant__ TensorMap o_map,  // of O, as of Q
            Problem p, TileList<Br> tiles,
            int* taken,  // how many of the list, without the first of each thread block; null if those are all
            float* lse)  // [B, H, Nq]
{
  constexpr int stages = Shape<D>::stages;
  Shared<T, D>& smem = *dynamic_shared<Shared<T, D>, tile_alignment>();
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
#ifdef ONES
  if (threadIdx.x < 16 * 8) {
    const int row = threadIdx.x / 8, chunk = threadIdx.x % 8;
    uint4 value = {0, 0, 0, 0};
    if (chunk == (row & 7)) value.x = ONE_BITS;
    reinterpret_cast<uint4*>(smem.ones)[row * 8 + chunk] = value;
  }
  fence_proxy_async();
#endif
  grid_dependency_wait();  // the kernel before this one has set the count, in global memory
  __syncthreads();         // the mbarriers are there

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  Ring<stages> ring;
  Ring<2> q;
  Tile tile;
  if (warpgroup == consumers) {
    setmaxnreg_dec<producer_registers>();
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
    setmaxnreg_inc<consumer_registers>();
    if (TURNS && warpgroup == consumers - 1) named_barrier_arrive(1, turn_threads);  // the first turn is the first consumer's
    for (; next(smem, tiles, tile, q); q.advance()) attend<polynomial>(smem, p, tile, ring, q, lse);
    if (TURNS && warpgroup == 0) named_barrier_sync(1, turn_threads);  // takes the last turn; no result depends on it
  }
}

__global__ void take_none(int* taken) {
  watch_step("no tile is taken yet");
  *taken = 0;
}

}  // namespace


}  // namespace hopper
#ifndef POLY
#define POLY 0
#endif
extern "C" void NAME(int batch, int heads, int n, int causal, const void* q_, const void* k_, const void* v_, void* o_, float* lse,
                     void* workspace, void* stream_) {
  using namespace hopper;
#ifdef FP16
  using T = __half;
#else
  using T = __nv_bfloat16;
#endif
  constexpr int D = 64;
  const auto stream = static_cast<cudaStream_t>(stream_);
  Problem p;
  p.batch = batch, p.heads = p.kv_heads = heads, p.seq_q = p.seq_k = n, p.head_dim = D;
#ifdef FP16
  p.dtype = attention::DType::fp16;
#else
  p.dtype = attention::DType::bf16;
#endif
  p.scale = 1 / std::sqrt(float(D));
  p.mask = causal ? attention::Mask::causal : attention::Mask::none;
  const T *q = static_cast<const T*>(q_), *k = static_cast<const T*>(k_), *v = static_cast<const T*>(v_);
  T* const o = static_cast<T*>(o_);
  constexpr int Bc = Shape<D>::Bc;
  const int all_heads = batch * heads;
  const TileList<Br> tiles = attention::all_tiles<Br>(p, attention::heads_that_run_together(p));
  const int all = tiles.heads * tiles.row_tiles, blocks = std::min(multiprocessors(), all);
  int* const taken = all == blocks ? nullptr : static_cast<int*>(workspace);
  if (taken) launch(take_none, {1, 1, 0, stream}, taken);
  launch_grid((forward<POLY, T, D>), {unsigned(blocks), threads, sizeof(Shared<T, D>), stream}, taken ? Blocks::dependent : Blocks::apart, tile_map<D>(q, all_heads, n, Br, D),
              tile_map<D>(k, all_heads, n, Bc, D), tile_map<D>(v, all_heads, n, Bc, D),
              tile_map<D>(o, all_heads, n, Br, D), p, tiles, taken, lse);
}
