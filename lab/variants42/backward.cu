// A throw-away copy of 21_shared_backward.cu with parts left out, by macros: where the joules go.
#include "device/math.h"
#ifdef NO_EXP  // 2^x to 6% by an addition and a shift: P is of the same kind, and the exp unit has nothing to do
__device__ inline float no_exp2(float x) { return __int_as_float(__float_as_int(x + 49279.f) << 15); }
#define exp2_approx no_exp2
#define exp2_polynomial no_exp2
#endif
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
// order. How many shares there are, the host decides (attention/backward_shares.h).
// Head dims above 128 go to other kernels, in wide/backward.cu.
//
// Expected limit: shared memory, as in bulk.
#include <algorithm>
#include <type_traits>
#include <cmath>
#include <cstdint>

#include "attention/backward_shares.h"
#include "attention/backward_workspace.h"
#include "attention/padded.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/dependent_launch.h"
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


using attention::BackwardArgs;
using attention::Problem;

namespace {

using attention::KeyTile;
using attention::QueryOrder;
using namespace warpgroup_backward;

#ifdef NO_COPIES
#define COPIES 0
#else
#define COPIES 1
#endif

constexpr int consumers = 2, threads = warpgroup_threads * (consumers + 1);
constexpr int Bc = wgmma_rows * consumers;  // keys of a thread block, wgmma_rows to a consumer

#if defined COLUMNS || defined NO_STATS
#define DS_FACTOR (1 / p_factor)
// make_p(), where LSE has been subtracted, or is the same everywhere
template <int queries, class VisibleKeys>
__device__ __forceinline__ void make_p_of(float (&x)[1][queries / 8][4], float minus, float scale, VisibleKeys visible_keys) {
  const float scale_log2 = scale * log2_e;
#pragma unroll
  for (int n = 0; n < queries / 8; n++)
    for (int r = 0; r < 4; r++) x[0][n][r] = exp2_approx(fmaf(x[0][n][r], scale_log2, minus));
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  if (visible_keys(0) < 16) {
#pragma unroll
    for (int n = 0; n < queries / 8; n++)
      for (int e = 0; e < 2; e++) {
        const int visible = visible_keys(8 * n + 2 * t + e) - g;
        for (int h = 0; h < 2; h++)
          if (8 * h >= visible) x[0][n][2 * h + e] = 0;
      }
  }
}
#else
#define DS_FACTOR 1
#endif
#ifdef COLUMNS
// start_product(), with eight further columns of A, which are in registers, and of B, which are a row of 16 bytes each
template <int a_rows, int D, int columns, class T>
__device__ __forceinline__ void start_product_and(float (&product)[1][columns / 8][4], const T* a, const T* b,
                                                  const uint32_t (&further_a)[4], const T* further_b) {
  // No swizzle: eight rows of 16 bytes are 128 bytes. The second eight columns are the first ones again: A is 0 there
  const uint64_t further = uint64_t((shared_address(further_b) & 0x3ffff) >> 4) | uint64_t(128 >> 4) << 32;
  wgmma<T>(product[0], further_a, further, false);
  const uint64_t a_tile = descriptor_of_rows<D>(a), b_tile = descriptor_of_rows<D>(b);
#pragma unroll
  for (int step = 0; step < D * int(sizeof(T)) / step_bytes; step++)
    wgmma<T>(product[0], wgmma_advance(a_tile, step_begin<a_rows, D, T>(step)),
             wgmma_advance(b_tile, step_begin<columns, D, T>(step)), true);
  wgmma_commit();
}

// prepare_turns() with these columns in place of the statistics
template <class T, class S>
__global__ void prepare_columns(Problem p, const T* o, const float* lse, const T* d_o, T* columns, int* turns, int* tickets) {
  constexpr int D = S::D, Br = S::Br, lanes = D / 8;
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x, row = thread / lanes, lane = thread % lanes;
  const unsigned head_tiles = ceil_div(p.seq_q, Br), tile = row / Br, head = tile / head_tiles;
  const unsigned i = tile % head_tiles * Br + row % Br;
  const size_t q_row = size_t(head) * p.seq_q + i, at = q_row * D + lane * 8;
  const RowStatistics of_row = row_statistics<D>(i < unsigned(p.seq_q), o + at, d_o + at, lse + q_row);
  if (lane == 0) {
    Pack8<T> pack{};
    float rest = fmaxf(-of_row.lse / (p.scale * log2_e), -1e30f);
    for (int k = 0; k < 3; k++) pack.x[k] = from_float<T>(rest), rest -= to_float(pack.x[k]);
    rest = -of_row.row_sum * p_factor;
    for (int k = 3; k < 6; k++) pack.x[k] = from_float<T>(rest), rest -= to_float(pack.x[k]);
    store_pack8(columns + size_t(row) * 8, pack);
    if (row % Br < S::parts) turns[size_t(tile) * S::parts + row % Br] = 0;
  }
  if (thread == 0) *tickets = 0;
}
#endif

constexpr int part_size = 64 * 64;  // a consumer's part of a tile of dQ: 64 columns of 64 queries

// 65536 registers are 168 for each of 384 threads, in multiples of 8: 24 + 2 * 240 = 3 * 168.
#ifndef REGS
#define REGS 240
#endif
constexpr int consumer_registers = REGS, producer_registers = 3 * 168 - 2 * REGS;

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
#ifdef COLUMNS
  T columns[Br][8];  // -LSE / (scale log2(e)) in three parts, -delta in three parts, 0, 0
#else
  float stats[2][2 * Br];             // LSE, then delta
#endif
  int ticket;
  Mbarrier kv_full, full[2], empty[2], dq_full[2][consumers], dq_ready[2][consumers];
#ifdef APART
  Mbarrier ds_full[2], ds_empty[2];
#endif
#ifdef SPLIT
  Mbarrier d_o_full[2], d_o_empty[2];
#endif
#ifdef COLUMNS
  Mbarrier columns_full, columns_empty;
#endif
};

// Starts the copies of a block. One thread.
template <class T, int D, class Order>
__device__ __forceinline__ void load(Shared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const TensorMap& d_o_map, const float* stats, KeyTile work,
                                     Order order, int kv_head) {
  constexpr int Br = Shape<D>::Br;
  [[maybe_unused]] constexpr int stats_bytes = 2 * Br * sizeof(float);
#ifdef COLUMNS
  Ring<1> columns;
#endif
  mbarrier_arrive_expect_tx(&smem.kv_full, 2 * Bc * D * sizeof(T));
  tensor_load(smem.k, k_map, &smem.kv_full, 0, work.j0, 0, kv_head);
  tensor_load(smem.v, v_map, &smem.kv_full, 0, work.j0, 0, kv_head);
  [[maybe_unused]] int loaded = 0;
  Ring<2> ring;
#pragma unroll 1
  for (int head = work.first_head; head < work.first_head + work.heads; head++)
#pragma unroll 1
    for (int step = work.head_tiles - 1; step >= work.start; step--, ring.advance()) {
      const int i = order.tile(step);
      mbarrier_wait(&smem.empty[ring.place], ring.parity ^ 1);
      Mbarrier* full = &smem.full[ring.place];
      if (!COPIES && loaded++ >= 2) {
        mbarrier_arrive(full);
        continue;
      }
#if defined SPLIT
      const float* of_tile = stats + (size_t(head) * work.head_tiles + i) * 2 * Br;
      mbarrier_arrive_expect_tx(full, Br * D * sizeof(T) + stats_bytes / 2);
      tensor_load(smem.q[ring.place], q_map, full, 0, i * Br, 0, head);
      bulk_load(smem.stats[ring.place], of_tile, stats_bytes / 2, full);
      mbarrier_wait(&smem.d_o_empty[ring.place], ring.parity ^ 1);
      Mbarrier* d_o_full = &smem.d_o_full[ring.place];
      mbarrier_arrive_expect_tx(d_o_full, Br * D * sizeof(T) + stats_bytes / 2);
      tensor_load(smem.d_o[ring.place], d_o_map, d_o_full, 0, i * Br, 0, head);
      bulk_load(smem.stats[ring.place] + Br, of_tile + Br, stats_bytes / 2, d_o_full);
#elif defined COLUMNS
      mbarrier_arrive_expect_tx(full, 2 * Br * D * sizeof(T));
      tensor_load(smem.q[ring.place], q_map, full, 0, i * Br, 0, head);
      tensor_load(smem.d_o[ring.place], d_o_map, full, 0, i * Br, 0, head);
      mbarrier_wait(&smem.columns_empty, columns.parity ^ 1);
      mbarrier_arrive_expect_tx(&smem.columns_full, Br * 16);
      bulk_load(smem.columns, reinterpret_cast<const T*>(stats) + (size_t(head) * work.head_tiles + i) * 8 * Br, Br * 16, &smem.columns_full);
      columns.advance();
#else
      mbarrier_arrive_expect_tx(full, 2 * Br * D * sizeof(T) + stats_bytes);
      tensor_load(smem.q[ring.place], q_map, full, 0, i * Br, 0, head);
      tensor_load(smem.d_o[ring.place], d_o_map, full, 0, i * Br, 0, head);
      bulk_load(smem.stats[ring.place], stats + (size_t(head) * work.head_tiles + i) * 2 * Br, stats_bytes, full);
#endif
    }
}

// Stores or adds a consumer's parts of dQ, each when it is this block's turn. One thread.
template <class T, int D, class Order>
__device__ __forceinline__ void add_dq(Shared<T, D>& smem, const TensorMap& dq_map, const Problem& p, float* dq_sum,
                                       int* turns, KeyTile work, Order order, int consumer) {
  constexpr int Br = Shape<D>::Br, bytes = part_size * sizeof(float);
  // A tile of this block, and the consumer's part of its dQ
  struct Place {
    int head, step, i;
    size_t part;
    int turn;
    bool last;  // this block is the last to add to it
  };
  const auto place_of = [&](int head, int step) -> Place {
    const int i = order.tile(step);
    return {head,
            step,
            i,
            (size_t(head) * work.head_tiles + i) * consumers + consumer,
            order.turn(i),
            order.template is_last<Br>(p, i)};
  };
  const auto after = [&](const Place& at) {
    return at.step > work.start ? place_of(at.head, at.step - 1) : place_of(at.head + 1, work.head_tiles - 1);
  };
  const auto exists = [&](const Place& at) {
    return at.head < work.first_head + work.heads && work.start < work.head_tiles;
  };
  // Makes the place for a part ready: it is empty, or if this is the last part, the sum of the others comes to it, as
  // soon as it is this block's turn. With `wait`, waits for the turn; without, returns false if it has not come.
  const auto prepare = [&](const Place& at, int room, bool wait) {
    Mbarrier* ready = &smem.dq_ready[room][consumer];
#ifdef NO_DQ
    mbarrier_arrive(ready);
    return true;
#endif
#ifdef LARGER
    if (!at.last || at.turn == 0) {
      mbarrier_arrive(ready);
      mbarrier_arrive(ready + 1);
      return true;
    }
    if (!wait && semaphore_peek(turns + at.part) != at.turn) return false;
    semaphore_wait(turns + at.part, at.turn);
    fence_proxy_async_global();
    for (int c = 0; c < 2; c++) {
      mbarrier_arrive_expect_tx(ready + c, bytes);
      bulk_load(smem.dq[room][c], dq_sum + (at.part + c) * part_size, bytes, ready + c);
    }
    return true;
#endif
    if (!at.last || at.turn == 0) {
      mbarrier_arrive(ready);
      return true;
    }
    if (!wait && semaphore_peek(turns + at.part) != at.turn) return false;
    semaphore_wait(turns + at.part, at.turn);
    fence_proxy_async_global();
    mbarrier_arrive_expect_tx(ready, bytes);
    bulk_load(smem.dq[room][consumer], dq_sum + at.part * part_size, bytes, ready);
    return true;
  };

  Ring<2> ring;
  Place at = place_of(work.first_head, work.head_tiles - 1), next = at;  // the next one to prepare
  int ahead = 0;                                                         // so many are ready, from `at` on
#pragma unroll 1
  for (; exists(at); at = after(at), ahead--, ring.advance()) {
    const float* dq = smem.dq[ring.place][consumer];
    while (ahead < 2 && exists(next) && prepare(next, ring.place ^ ahead, ahead == 0)) next = after(next), ahead++;
    mbarrier_wait(&smem.dq_full[ring.place][consumer], ring.parity);
#ifdef NO_DQ
    continue;
#endif
#ifdef LARGER
    mbarrier_wait(&smem.dq_full[ring.place][1], ring.parity);
    if (at.last)
      tensor_store(dq_map, smem.dq[ring.place][1], 0, at.i * Br + (D == 128 ? 0 : 64), D == 128 ? 1 : 0, at.head);
#define FACTOR 2
#else
#define FACTOR 1
#endif
    if (at.last) {
      tensor_store(dq_map, dq, 0, at.i * Br + (D == 128 ? 0 : consumer * 64), D == 128 ? consumer : 0, at.head);
    } else if (at.turn == 0) {
      bulk_store(dq_sum + at.part * part_size, dq, FACTOR * bytes);
    } else {
      semaphore_wait(turns + at.part, at.turn);
      bulk_add(dq_sum + at.part * part_size, dq, FACTOR * bytes);
    }
    bulk_commit();
    bulk_wait_read<0>();
    if (ahead == 2 && exists(next) && prepare(next, ring.place, false)) next = after(next), ahead++;
    bulk_wait<0>();  // the sum is in global memory, and the next block may have its turn
    fence_acq_rel();
    semaphore_set(turns + at.part, at.turn + 1);
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
#ifdef COLUMNS
  Ring<1> columns;
  // A fragments of rows that are all alike: 1 1 1 0 0 0 0 0 | 0, and 0 0 0 1 1 1 0 0 | 0. Lane t of four has 2 t, 2 t + 1
  const int t = lane % 4;
  const float ones[2][2] = {{t < 2 ? 1.f : 0.f, t < 1 ? 1.f : 0.f}, {t == 2 ? 1.f : 0.f, t == 1 || t == 2 ? 1.f : 0.f}};
  const uint32_t of_lse = pack2<T>(ones[0][0], ones[0][1]), of_delta = pack2<T>(ones[1][0], ones[1][1]);
  uint32_t for_lse[4] = {of_lse, of_lse, 0, 0}, for_delta[4] = {of_delta, of_delta, 0, 0};
#endif
  Ring<2> ring;
  mbarrier_wait(&smem.kv_full, 0);
#ifdef APART

  const auto bring_dq = [&](float (&dq_reg)[1][8][4], Ring<2> before, int i_before) {
      mbarrier_wait(&smem.dq_ready[before.place][consumer], before.parity);
      float4* dq = reinterpret_cast<float4*>(smem.dq[before.place][consumer]) + threadIdx.x % warpgroup_threads;
      if (order.template is_last<Br>(p, i_before)) {
        if (order.turn(i_before) > 0) {
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
          for (int r = 0; r < 4; r++) dq_reg[0][n][r] *= p.scale * DS_FACTOR;
        uint32_t dq_half[1][4][4];
        swizzled_tile::round_fragments<T, 64>(dq_half, dq_reg);
        swizzled_tile::store_transpose<64, 64>(reinterpret_cast<T*>(smem.dq[before.place][consumer]), dq_half,
                                               threadIdx.x / 32 % 4);
      } else {
#pragma unroll
        for (int n = 0; n < 8; n++)
          dq[n * warpgroup_threads] = make_float4(dq_reg[0][n][0], dq_reg[0][n][1], dq_reg[0][n][2], dq_reg[0][n][3]);
      }
      fence_proxy_async();
      __syncwarp();  // the warp's part of dQ is in shared memory
      if (lane == 0) mbarrier_arrive(&smem.dq_full[before.place][consumer]);

  };
  const auto one = [&](auto is_first, int step) {
    constexpr bool first = decltype(is_first)::value;
    Ring<2> before = ring;
    before.place ^= 1, before.parity ^= ring.place == 0;  // the one before
    const int i = order.tile(step), i_before = order.tile(step + 1);
    const T *q = smem.q[ring.place], *d_o = smem.d_o[ring.place];
#ifndef COLUMNS
    const float* stats = smem.stats[ring.place];
#endif
    T* ds = smem.ds[ring.place];
    float p_reg[1][Br / 8][4], ds_reg[1][Br / 8][4];
    mbarrier_wait(&smem.full[ring.place], ring.parity);
    wgmma_fence();
#ifdef COLUMNS
    mbarrier_wait(&smem.columns_full, columns.parity);
    wgmma_fence(for_lse);
    start_product_and<Bc, D, Br>(p_reg, k_rows, q, for_lse, smem.columns[0]);
    wgmma_fence(for_delta);
    start_product_and<Bc, D, Br>(ds_reg, v_rows, d_o, for_delta, smem.columns[0]);
#else
    start_product<Bc, D, Br>(p_reg, k_rows, q);
    start_product<Bc, D, Br>(ds_reg, v_rows, d_o);
#endif
    uint32_t p_half[1][Br / 16][4], ds_half[1][Br / 16][4];
    wgmma_wait<1>(p_reg);
    const auto visible = [&](int row) { return p.visible_keys(i * Br + row) - work.j0 - warp_key; };
#ifdef COLUMNS
    make_p_of<Br>(p_reg, 0.f, p.scale, visible);
#else
    if constexpr (D == 64)
      make_p_ahead<Br>(p_reg, p.scale, stats, visible);
    else
      make_p<Br>(p_reg, p.scale, stats, visible);
#endif
    swizzled_tile::round_fragments<T, Br>(p_half, p_reg);
    wgmma_wait<0>(ds_reg);
#ifdef COLUMNS
    if (lane == 0) mbarrier_arrive(&smem.columns_empty);
    columns.advance();
#pragma unroll
    for (int n = 0; n < Br / 8; n++)
      for (int r = 0; r < 4; r++) ds_reg[0][n][r] *= p_reg[0][n][r];
#else
    make_ds<Br>(ds_reg, fragments_of(p_reg), stats + Br);
#endif
    swizzled_tile::round_fragments<T, Br>(ds_half, ds_reg);
    mbarrier_wait(&smem.ds_empty[ring.place], ring.parity ^ 1);
    swizzled_tile::store_transpose<Br, Br>(ds + consumer * Br * page_row, ds_half, threadIdx.x / 32 % 4);
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) mbarrier_arrive(&smem.ds_full[ring.place]);
    if constexpr (first) {
      wgmma_fence(dv_reg);
      wgmma_fence(dk_reg);
      start_sum<D, Br>(dv_reg, p_half, d_o);
      start_sum<D, Br>(dk_reg, ds_half, q);
    } else {
      mbarrier_wait(&smem.ds_full[before.place], before.parity);
      wgmma_fence();
      float dq_reg[1][8][4];
      start_dq<Bc, Br>(dq_reg, k_columns, smem.ds[before.place] + first_query * page_row);
      start_sum<D, Br>(dv_reg, p_half, d_o);
      start_sum<D, Br>(dk_reg, ds_half, q);
      wgmma_wait<2>(dq_reg);
      if (lane == 0) mbarrier_arrive(&smem.ds_empty[before.place]);
      bring_dq(dq_reg, before, i_before);
    }
    wgmma_wait<0>(dv_reg, dk_reg);
    if (lane == 0) mbarrier_arrive(&smem.empty[ring.place]);
    ring.advance();
  };
  int step = work.head_tiles - 1;
  one(std::true_type(), step);
#pragma unroll 1
  for (step--; step >= work.start; step--) one(std::false_type(), step);
  {
    Ring<2> before = ring;
    before.place ^= 1, before.parity ^= ring.place == 0;
    mbarrier_wait(&smem.ds_full[before.place], before.parity);
    wgmma_fence();
    float dq_reg[1][8][4];
    start_dq<Bc, Br>(dq_reg, k_columns, smem.ds[before.place] + first_query * page_row);
    wgmma_wait<0>(dq_reg);
    bring_dq(dq_reg, before, order.tile(step + 1));
  }
#else
#pragma unroll 1
  for (int head = work.first_head; head < work.first_head + work.heads; head++)
#pragma unroll 1
    for (int step = work.head_tiles - 1; step >= work.start; step--, ring.advance()) {
      const int i = order.tile(step);
      const T *q = smem.q[ring.place], *d_o = smem.d_o[ring.place];
#ifndef COLUMNS
      const float* stats = smem.stats[ring.place];
#endif
      T* ds = smem.ds[ring.place];
      const int64_t q_row = int64_t(head) * p.seq_q + i * Br;
      const Watched tile = {q_row, work.j0 + warp_key, p.seq_q - i * Br, p.seq_k - work.j0 - warp_key};

      watch_step("1. S = Q K^T, dP = dO V^T");  // transposed
      float p_reg[1][Br / 8][4], ds_reg[1][Br / 8][4];
      mbarrier_wait(&smem.full[ring.place], ring.parity);
      wgmma_fence();
#ifdef COLUMNS
      mbarrier_wait(&smem.columns_full, columns.parity);
      wgmma_fence(for_lse);
      start_product_and<Bc, D, Br>(p_reg, k_rows, q, for_lse, smem.columns[0]);
      wgmma_fence(for_delta);
      start_product_and<Bc, D, Br>(ds_reg, v_rows, d_o, for_delta, smem.columns[0]);
#else
      start_product<Bc, D, Br>(p_reg, k_rows, q);
#ifdef SPLIT
      mbarrier_wait(&smem.d_o_full[ring.place], ring.parity);
      wgmma_fence();
#endif
      start_product<Bc, D, Br>(ds_reg, v_rows, d_o);
#endif

      watch_step("2. P = exp(S - LSE), dS = P (dP - delta)");  // transposed; dS to shared memory, too
      uint32_t p_half[1][Br / 16][4], ds_half[1][Br / 16][4];
      wgmma_wait<1>(p_reg);
      const auto visible = [&](int row) { return p.visible_keys(i * Br + row) - work.j0 - warp_key; };
#if defined COLUMNS
      make_p_of<Br>(p_reg, 0.f, p.scale, visible);
#elif defined NO_STATS
      make_p_of<Br>(p_reg, -1.7f, p.scale, visible);
#else
      if constexpr (D == 64)
        make_p_ahead<Br>(p_reg, p.scale, stats, visible);  // beside a product, in machine code too
      else
        make_p<Br>(p_reg, p.scale, stats, visible);
#endif
      swizzled_tile::round_fragments<T, Br>(p_half, p_reg);
      watch_transpose("P", tile, p_reg, 1 / p_factor);
      wgmma_wait<0>(ds_reg);
      watch_transpose("dP", tile, ds_reg);
#if defined COLUMNS
      if (lane == 0) mbarrier_arrive(&smem.columns_empty);
      columns.advance();
#endif
#if defined COLUMNS || defined NO_STATS
#pragma unroll
      for (int n = 0; n < Br / 8; n++)
        for (int r = 0; r < 4; r++) ds_reg[0][n][r] *= p_reg[0][n][r];  // 2^12 dS
#else
      make_ds<Br>(ds_reg, fragments_of(p_reg), stats + Br);
#endif
      watch_transpose("dS", tile, ds_reg);
      swizzled_tile::round_fragments<T, Br>(ds_half, ds_reg);
#ifndef NO_DS
      swizzled_tile::store_transpose<Br, Br>(ds + consumer * Br * page_row, ds_half, threadIdx.x / 32 % 4);
      fence_proxy_async();
#endif

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
#ifdef SPLIT
      if (lane == 0) mbarrier_arrive(&smem.d_o_empty[ring.place]);  // dV is done as well
#endif
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
          for (int r = 0; r < 4; r++) dq_reg[0][n][r] *= p.scale * DS_FACTOR;
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

#endif

  named_barrier_sync(1, warpgroup_threads * consumers);  // everyone is done with K and V
  const int rows_left = p.seq_k - work.j0 - warp_key;
  const size_t row = size_t(work.kv_head) * p.seq_k + work.j0 + warp_key;  // over all shares
  if (shares == 1) {
    swizzled_tile::store_rows<Bc, D>(dv + row * D, smem.v + warp_key * page_row, dv_reg, 1 / p_factor, rows_left);
    swizzled_tile::store_rows<Bc, D>(dk + row * D, smem.k + warp_key * page_row, dk_reg, p.scale * DS_FACTOR, rows_left);
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
#ifdef APART
      mbarrier_init(&smem.ds_full[i], 4 * consumers);
      mbarrier_init(&smem.ds_empty[i], 4 * consumers);
#endif
#ifdef SPLIT
      mbarrier_init(&smem.d_o_full[i], 1);
      mbarrier_init(&smem.d_o_empty[i], 4 * consumers);
#endif
#ifdef COLUMNS
      if (i == 0) mbarrier_init(&smem.columns_full, 1), mbarrier_init(&smem.columns_empty, 4 * consumers);
#endif
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
#ifdef LARGER
    else if (warp < 1 && elect_one())
#else
    else if (warp < consumers && elect_one())
#endif
      add_dq(smem, dq_map, p, dq_sum, turns, work, order, warp);
  } else {
    setmaxnreg_inc<consumer_registers>();
    differentiate(smem, p, work, order, shares, parts, dk, dv);
  }
}


}  // namespace

extern "C" void NAME(int batch, int heads, int n, const void* q_, const void* k_, const void* v_, const void* o_,
                     const float* lse, const void* d_o_, void* dq_, void* dk_, void* dv_, void* workspace,
                     void* stream_) {
  using T = __nv_bfloat16;
  constexpr int D = DIM;
  using S = Shape<D>;
  const auto stream = static_cast<cudaStream_t>(stream_);
  Problem p;
  p.batch = batch, p.heads = p.kv_heads = heads, p.seq_q = p.seq_k = n, p.head_dim = D;
  p.dtype = attention::DType::bf16, p.scale = 1 / std::sqrt(float(D));
  const auto in = [](const void* x) { return static_cast<const T*>(x); };
  const auto out = [](void* x) { return static_cast<T*>(x); };
  const int all = batch * heads, shares = 1;
  const attention::BackwardTiles<S> tiles(p);
#ifdef COLUMNS
  float* const dq_sum = static_cast<float*>(workspace);
  float* const stats = dq_sum + size_t(tiles.q_tiles) * S::Br * D;  // [q_tiles][Br][8] of T
  int *const turns = reinterpret_cast<int*>(stats + size_t(tiles.q_tiles) * 4 * S::Br), *const tickets = turns + size_t(tiles.q_tiles) * consumers;
  launch(prepare_columns<T, S>, {tiles.row_blocks, S::threads, 0, stream}, p, in(o_), lse, in(d_o_),
         reinterpret_cast<T*>(stats), turns, tickets);
#else
  const auto [dq_sum, stats, turns, tickets] = attention::BackwardWorkspace::of(workspace, tiles, consumers);
  launch(prepare_turns<T, S>, {tiles.row_blocks, S::threads, 0, stream}, p, in(o_), lse, in(d_o_), stats, turns,
         tickets, out(dq_));
#endif
  launch_grid(gradients<T, D, false>, {tiles.key_blocks, threads, sizeof(Shared<T, D>), stream}, Blocks::dependent,
              tile_map<D>(in(q_), all, n, S::Br), tile_map<D>(in(k_), all, n, Bc), tile_map<D>(in(v_), all, n, Bc),
              tile_map<D>(in(d_o_), all, n, S::Br), tile_map<D>(in(dq_), all, n, 64, D, 1), p, shares,
              attention::kv_heads_that_share_the_l2(p), stats, dq_sum, turns, tickets, static_cast<float*>(nullptr),
              out(dk_), out(dv_));
}

}  // namespace hopper
