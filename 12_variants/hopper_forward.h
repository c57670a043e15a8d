// The forward of this chapter on Hopper: the loops of chapter 10's `fitted` (20_fitted.cu, launched as 23_prompt.cu
// does) and `beside` (30_beside.cu), with what models add where extras.h says that it is wanted. Read it beside those
// files: what is not about views, windows, scores or sinks is the same.
//
// A thread block stays as long as the kernel runs and takes tile after tile, each of 192 or 128 query rows of one
// head, with a consumer warpgroup for every 64 of them, from Q to O. One more warpgroup is the producer, of which two
// warps have work. What each does, waits for, and signals (->):
//
//   producer, warp 0   which tile, and its Q  waits for q_empty                      -> q_full
//                      K and V, tile by tile  waits for k_empty, v_empty             -> k_full, v_full
//   producer, warp 1   O to memory            waits for o_full                       -> q_empty
//   consumers          the first S            waits for q_full, k_full               -> k_empty
//                      S(j), then O += P V(j-1) starts
//                      x = score(S(j)) - m, while P V(j-1) runs
//                      P = 2^x, and O is there, and follows m, in either order       -> v_empty
//                      (where O is first, v_full(j) and k_full(j+1) are asked for beside P = 2^x)
//                      O / l, with the sink   to shared memory, where Q was          -> o_full
//
// Views: a tensor map takes any strides, so they are the map's, and no thread computes with them. Heads and batches
// are two dimensions of it, and columns one, so a copy brings a page of 64 columns, and a tile of D = 128 is two.
//
// Window: K and V come from the first tile that a row of the block sees to the last. Of those a consumer lets pass by
// what its own 64 rows do not see, on both sides. A tile is masked if it crosses an edge of what the warp's 16 rows
// see.
//
// Packed: the producer looks up whose tile it is, and tells the others. What lies behind a sequence's end comes as
// zeros, and O's rows there stay where they are (hopper.h says how a map knows).
//
// Blocks: the producer reads which tiles of keys its rows have, and tells the others with each of them which it is. The
// bits of one that is cut come with its K. Rows without any take one that does not exist, and comes as zeros.
//
// ALiBi: x grows with every tile that is nearer to the queries. From the first key on, m would rise in nearly all of
// them. So the nearest tile comes first, and m is high enough from the start.
#pragma once

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <variant>

#include "attention/dispatch.h"
#include "attention/schedule.h"
#include "blocks.h"
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
#include "device/warpgroup_tile.h"
#include "device/watch.h"
#include "extras.h"
#include "hopper.h"
#include "packed.h"

namespace variants::on_hopper {

using attention::ForwardArgs;
using attention::Tile;
using attention::TileList;
using namespace warpgroup_tile;

template <int consumers>
constexpr int threads = warpgroup_threads*(consumers + 1);
template <int consumers>
constexpr int Br = wgmma_rows* consumers;  // query rows of a tile, wgmma_rows to a consumer

// 65536 registers are 128 for each of 512 threads, the producer's among them: 3 * 160 + 32 = 4 * 128. With two
// consumers they are 168 for each of 384, in multiples of 8: 24 + 2 * 240 = 3 * 168.
// The producer of a block mask reads lists, for which it takes more.
template <int consumers, class X>
constexpr int producer_registers = consumers == 3 ? 32
                                   : X::blocks    ? 40
                                                  : 24;
template <int consumers, class X>
constexpr int consumer_registers = consumers == 3 ? 160
                                   : X::blocks    ? 232
                                                  : 240;

// Keys of a tile: 64 registers of O, 32 of S and 16 of P at D = 128; 32, 64 and 32 at 64. With a block mask it is the
// mask's tile. So at D = 128 a score has 64 registers of S and 32 of P, which two consumers have.
template <int D, class X>
constexpr int Bc = X::blocks ? BlockMask::tile : 8192 / D;
// Of K and V: at most 225 KB with two of Q
template <int D, class X>
constexpr int stages = 32768 / (D * Bc<D, X>);

// Which order, chosen by measurements with 16,384 keys (In depth, "Which order?"). Block masks are apart: they take
// longer with the new one where a row of tiles is short.
template <class X>
constexpr bool plain_score = std::is_same_v<typename X::Score, Linear> && !X::blocks;
// O is awaited before the exponentials, as in `beside`, and P is rounded beside them.
template <int D, int consumers, class X>
constexpr bool o_first = plain_score<X> ? D == 64 || X::window || consumers == 2 : D == 128;
// The next K and V are asked for beside them, too.
template <int D, int consumers, class X>
constexpr bool asks = o_first<D, consumers, X> && !X::blocks;

// A tile of rows, and whose it is: over all batches, or of a packed sequence and where that begins.
struct Work {
  Tile tile;
  Sequence of;
};

// In the packed list with this index; a head below 0 if there are not so many.
template <int Br>
__device__ Work work_of(const Problem& p, const Sequences& sequences, const TileList<Br>& tiles, int index) {
  const auto [b, its_index] = sequences.find(index, p.heads);
  if (b < 0) return {{-1, 0}, {}};
  Work work = {{}, sequences.of(b)};
  TileList<Br> its_tiles = tiles;
  its_tiles.heads = p.heads, its_tiles.row_tiles = ceil_div(work.of.seq_q, Br);
  its_tiles.get(work.tile, its_index);
  return work;
}

// Of a block mask, what the producer tells the others: how many tiles of keys each Q has, which one each K is, and of
// one that is cut the bits, which come with K.
template <int stages>
struct ListedKeys {
  alignas(16) uint32_t bits[stages][BlockLists::tile_words];
  BlockLists::Listed keys[stages];
  int steps[2];
};

template <class T, int D, int consumers, class X>
struct Shared {
  static constexpr int Bc = on_hopper::Bc<D, X>, stages = on_hopper::stages<D, X>;
  T q[2][Br<consumers> * D];  // each tile in D / 64 pages of 128 bytes a row, swizzled; later O
  T k[stages][Bc * D], v[stages][Bc * D];
  std::conditional_t<X::blocks, ListedKeys<stages>, std::monostate> listed;
  int index[2];  // in the list, of the tile that each Q belongs to
  Work work[2];  // the same of packed sequences
  Mbarrier q_full[2], q_empty[2], o_full[2];
  Mbarrier k_full[stages], k_empty[stages], v_full[stages], v_empty[stages];
};

struct ForwardMaps {
  TensorMap q;        // of Q [B, H, Nq, D], in boxes of Br rows
  TensorMap k;        // of K [B, Hkv, Nk, D], in boxes of Bc rows
  TensorMap v;        // of V, likewise
  TensorMap o;        // of O, as of Q
  TensorMap nothing;  // packed: zeros for K and V of rows that see no keys
};

// The tiles of keys that rows first_row to last_row see, or if they see none, one. Rows that do not exist see none.
template <int Bc, class X>
__device__ Tiles key_tiles(const Problem& p, int first_row, int last_row) {
  const SeenKeys seen = seen_by<X>(p, min(first_row, p.seq_q - 1), min(last_row, p.seq_q - 1));
  const int start = seen.begin / Bc;
  return {start, max(start + 1, ceil_div(seen.end, Bc))};
}

// The order of a block's tiles of keys: from the first to the last, or where scores fall with the distance, from the
// nearest to its last row down to the first, and then those behind it.
template <int Bc, class X>
struct KeyOrder {
  static constexpr bool nearest_first = X::Score::has_line;
  Tiles tiles;
  int down;  // how many come before those behind

  __device__ KeyOrder(const Problem& p, int first_row, int last_row)
      : tiles(key_tiles<Bc, X>(p, first_row, last_row)), down(0) {
    const int nearest = max(0, min(last_row, p.seq_q - 1) + p.seq_k - p.seq_q) / Bc;
    if constexpr (nearest_first) down = min(nearest + 1, tiles.stop) - tiles.start;
  }
  __device__ int behind() const { return tiles.start + down; }
  __device__ int steps() const { return tiles.stop - tiles.start; }
  __device__ int tile(int step) const { return tiles.start + (step < down ? down - 1 - step : step); }

  // The steps in which some of the block's rows take theirs. If these are on both sides of the nearest, those between
  // are taken, too.
  __device__ Tiles steps_of(Tiles own) const {
    const int start = own.start - tiles.start, stop = own.stop - tiles.start;
    if (down == 0) return {start, stop};
    return {max(0, down - stop), stop > down ? stop : down - start};
  }
};

// Tells the others the next tile, which q_full will say is there: its index, and if there are packed sequences, whose
// it is. One thread.
template <class T, int D, int consumers, class X>
__device__ void announce(Shared<T, D, consumers, X>& smem, int index, const Work& work, const Ring<2>& q) {
  mbarrier_wait(&smem.q_empty[q.place], q.parity ^ 1);
  if constexpr (X::packed)
    smem.work[q.place] = work;
  else
    smem.index[q.place] = index;
}

// The others' next tile; false if none is left.
template <class T, int D, int consumers, class X>
__device__ bool next(Shared<T, D, consumers, X>& smem, const TileList<Br<consumers>>& tiles, Work& work,
                     const Ring<2>& q) {
  mbarrier_wait(&smem.q_full[q.place], q.parity);
  if constexpr (!X::packed) return tiles.get(work.tile, smem.index[q.place]);
  work = smem.work[q.place];
  return work.tile.head >= 0;
}

// The same, for the compiler too: what all lanes of a warp have it keeps in the registers that a warp shares.
template <class X>
__device__ Work shared_by_lanes(const Work& work) {
  if constexpr (!X::packed) return work;  // made of one number
  const auto of = [](int x) { return __shfl_sync(0xffffffff, x, 0); };
  return {{of(work.tile.head), of(work.tile.i0)},
          {of(work.of.index), of(work.of.begin_q), of(work.of.begin_k), of(work.of.seq_q), of(work.of.seq_k)}};
}

// The rows of a tile's queries, and of its keys.
template <class X>
__device__ HeadOfBatch rows_of_queries(const Problem& p, const Work& work) {
  if constexpr (X::packed) return {work.tile.head, work.of.begin_q, work.of.seq_q};
  return {work.tile.head, p.heads};
}
template <class X>
__device__ HeadOfBatch rows_of_keys(const Problem& p, const Work& work) {
  const int head = p.kv_head(work.tile.head);
  if constexpr (X::packed) return {head, work.of.begin_k, work.of.seq_k};
  return {head, p.kv_heads};
}

// Starts the copies of a tile. One thread.
template <class T, int D, int consumers, class X>
__device__ __forceinline__ void load(Shared<T, D, consumers, X>& smem, const ForwardMaps& maps, Problem p,
                                     const Work& work, Ring<stages<D, X>>& ring, const Ring<2>& q,
                                     [[maybe_unused]] const Lists<X>& lists) {
  constexpr int Br = on_hopper::Br<consumers>, Bc = on_hopper::Bc<D, X>, kv_bytes = Bc * D * sizeof(T);
  if constexpr (X::packed) p = alone(p, work.of);
  const Tile& tile = work.tile;
  const HeadOfBatch head = rows_of_queries<X>(p, work), kv_head = rows_of_keys<X>(p, work);
  [[maybe_unused]] BlockLists::List list;
  if constexpr (X::blocks) {
    list = lists.of_row(p, tile.head, tile.i0 / Br);
    smem.listed.steps[q.place] = max(1, list.end - list.begin);
  }
  mbarrier_arrive_expect_tx(&smem.q_full[q.place], Br * D * sizeof(T));
  load_tile<X, D, Br>(smem.q[q.place], maps.q, &smem.q_full[q.place], tile.i0, head);
  const KeyOrder<Bc, X> order(p, tile.i0, tile.i0 + Br - 1);
  const auto load_keys = [&](int j, [[maybe_unused]] int cut = -1) {
    mbarrier_wait(&smem.k_empty[ring.place], ring.parity ^ 1);
    int bytes = kv_bytes;
    if constexpr (X::blocks) {
      smem.listed.keys[ring.place] = {j, cut};
      if (cut >= 0) bytes += sizeof(smem.listed.bits[0]);
    }
    mbarrier_arrive_expect_tx(&smem.k_full[ring.place], bytes);
    if constexpr (X::blocks)
      if (cut >= 0)
        bulk_load(smem.listed.bits[ring.place], lists.bits_of_queries(cut), sizeof(smem.listed.bits[0]),
                  &smem.k_full[ring.place]);
    load_tile<X, D, Bc>(smem.k[ring.place], maps.k, &smem.k_full[ring.place], j * Bc, kv_head, &maps.nothing);
    mbarrier_wait(&smem.v_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.v_full[ring.place], kv_bytes);
    load_tile<X, D, Bc>(smem.v[ring.place], maps.v, &smem.v_full[ring.place], j * Bc, kv_head, &maps.nothing);
    ring.advance();
  };
  if constexpr (X::blocks) {
    if (list.begin == list.end) load_keys(lists.columns);
#pragma unroll 1
    for (int t = list.begin; t < list.end; t++) {
      const BlockLists::Listed listed = lists.row_tile(t);
      load_keys(listed.tile, listed.cut);
    }
  } else {
#pragma unroll 1
    for (int j = order.behind() - 1; j >= order.tiles.start; j--) load_keys(j);
#pragma unroll 1
    for (int j = order.behind(); j < order.tiles.stop; j++) load_keys(j);
  }
}

// The m of a lane's two rows between two tiles, as one 64-bit value: it has an even register and the odd one behind it.
// Left to itself, ptxas takes two odd ones at D = 64, and the loop takes 3 to 5% longer, with the same instructions.
// Nobody knows why (In depth, "Which order?").
class RegisterPair {
 public:
#ifdef WORKBOOK_SIMT
  void keep(const float (&)[2]) {}
  void give(float (&)[2]) const {}
#else
  __device__ void keep(const float (&m)[2]) {
    asm volatile("mov.b64 %0, {%1, %2};" : "=l"(both) : "f"(m[0]), "f"(m[1]));
  }
  __device__ void give(float (&m)[2]) const {
    asm volatile("mov.b64 {%0, %1}, %2;" : "=f"(m[0]), "=f"(m[1]) : "l"(both));
  }

 private:
  uint64_t both;
#endif
};

// x = score(S) - m, in place of S. True for the whole warp if a row needs another m, as in device/lazy_softmax.h.
// `distance` is that from column 0 to row 0 of the warp.
template <int columns, class Score>
__device__ __forceinline__ bool subtract_max(float (&x)[1][columns][4], const lazy_softmax::Rows<1>& rows,
                                             const Score& function, int distance) {
  const int top = with_score(function, x, distance - (8 * columns - 1), distance + 15, [&](const auto& score) {
    int largest[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const float own = distance + 8 * h + int(threadIdx.x % 32 / 4) - 2 * int(threadIdx.x % 4);
      largest[h] = __float_as_int(rows.minus_l[0][h]);
#pragma unroll
      for (int n = 0; n < columns; n++) {
        float* pair = x[0][n] + 2 * h;
        for (int c = 0; c < 2; c++) pair[c] = less(score, pair[c], own, 8 * n + c, rows.m[0][h]);
        largest[h] = max(max(largest[h], __float_as_int(pair[0])), __float_as_int(pair[1]));
      }
    }
    return max(largest[0], largest[1]);
  });
  return __any_sync(0xffffffff, top > __float_as_int(lazy_softmax::headroom));
}

// A consumer's 64 rows of a tile.
template <class T, int D, int consumers, class X>
__device__ __forceinline__ void attend(Shared<T, D, consumers, X>& smem, Problem p, Work work, Ring<stages<D, X>>& ring,
                                       const Ring<2>& q, const typename X::Score& any_head, float* lse,
                                       const float* sink, [[maybe_unused]] const Lists<X>& lists) {
  const Tile tile = work.tile;
  int64_t lse_row = int64_t(tile.head) * p.seq_q;  // where the head's row 0 is
  if constexpr (X::packed) {
    lse_row = int64_t(tile.head) * p.total_q + work.of.begin_q;
    p = alone(p, work.of);
  }
  const typename X::Score score = any_head.of_head(X::packed ? work.of.index * p.heads + tile.head : tile.head);
  constexpr int Br = on_hopper::Br<consumers>, Bc = on_hopper::Bc<D, X>;
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 rows
  const int first_row = tile.i0 + warp_row, own_row = tile.i0 + wgmma_rows * consumer;
  const KeyOrder<Bc, X> order(p, tile.i0, tile.i0 + Br - 1);
  Tiles own = order.steps_of(key_tiles<Bc, X>(p, own_row, own_row + wgmma_rows - 1));
  if (X::packed && own_row >= p.seq_q) own.stop = own.start + 1;   // sequences end often: no row is this consumer's
  if constexpr (X::blocks) own = {0, smem.listed.steps[q.place]};  // all are of all rows
  const SeenKeys of_warp = seen_by<X>(p, first_row, first_row + 15);
  const T* q_rows = smem.q[q.place] + wgmma_rows * consumer * page_row;

  float s_reg[1][Bc / 8][4], o_reg[1][D / 8][4] = {};
  uint32_t p_reg[1][Bc / 16][4];
  lazy_softmax::Rows<1> rows;
  const Watched state = {lse_row + first_row, 0, p.seq_q - first_row, D};
  const auto scores = [&](int j) { return Watched{state.row, j * Bc, state.rows, p.seq_k - j * Bc}; };
  // Which tile of keys a step has, whose K has come, and of a block mask its bits if it is cut.
  [[maybe_unused]] bool is_cut = false;
  [[maybe_unused]] Bits<1, Bc / 8> bits;
  const auto keys_of = [&](int step) {
    if constexpr (!X::blocks) return order.tile(step);
    if constexpr (X::blocks) {
      const BlockLists::Listed keys = smem.listed.keys[ring.place];
      is_cut = keys.cut >= 0;
      if (is_cut) bits.load(smem.listed.bits[ring.place], warp_row, 0);
      __syncwarp();  // all lanes have read it: with K the producer may write others
      return keys.tile;
    }
  };
  [[maybe_unused]] RegisterPair m;
  if constexpr (plain_score<X>) m.keep(rows.m[0]);
  // x in place of S, and whether m has to rise for it
  const auto make_x = [&](int j) {
    watch_step("2. x = score(S) - m; m rises only if it must; P = 2^x");
    if constexpr (plain_score<X>) m.give(rows.m[0]);
    watch("S", scores(j), s_reg, p.scale);
    const bool above = subtract_max(s_reg, rows, score, first_row + p.seq_k - p.seq_q - j * Bc);
    hide<X>(s_reg, p, of_warp, first_row, j * Bc);
    if constexpr (X::blocks)
      if (is_cut) bits.hide(s_reg, -INFINITY);
    return above;
  };
  // m rises, and l and O follow; or O does later
  const auto raise = [&] {
    lazy_softmax::raise(s_reg, o_reg, rows, state);
    if constexpr (plain_score<X>) m.keep(rows.m[0]);
  };
  [[maybe_unused]] const auto raise_max = [&](float(&correction)[1][2]) {
    lazy_softmax::raise_max(s_reg, rows, correction, state);
    if constexpr (plain_score<X>) m.keep(rows.m[0]);
  };
  // This warp no longer needs the buffer that the mbarrier guards.
  const auto release = [&](Mbarrier& empty) {
    if (lane == 0) mbarrier_arrive(&empty);
  };
  // Tiles that only the other warpgroups compute
  const auto let_pass = [&](int from, int to) {
#pragma unroll 1
    for (int step = from; step < to; step++, ring.advance()) {
      mbarrier_wait(&smem.k_full[ring.place], ring.parity);
      release(smem.k_empty[ring.place]);
      mbarrier_wait(&smem.v_full[ring.place], ring.parity);
      release(smem.v_empty[ring.place]);
    }
  };

  if constexpr (X::window || order.nearest_first) let_pass(0, own.start);
  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  watch_step("1. S = Q K^T");
  wgmma_fence();
  start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
  const int first = keys_of(own.start);
  wgmma_wait<0>(s_reg);
  release(smem.k_empty[ring.place]);
  if (make_x(first)) raise();
  lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(first));

  // The next K, unless this tile is the last, and this V: whether they are there, without waiting; and the wait
  [[maybe_unused]] Ring<stages<D, X>> next = ring;
  next.advance();
  [[maybe_unused]] const auto next_is_there = [&](bool last) {
    const bool v_is_there = mbarrier_test(&smem.v_full[ring.place], ring.parity);
    const bool k_is_there = mbarrier_test(&smem.k_full[next.place], next.parity);
    return v_is_there && (k_is_there || last);
  };
  [[maybe_unused]] const auto wait_for_next = [&](bool last) {
    mbarrier_wait(&smem.v_full[ring.place], ring.parity);
    if (!last) mbarrier_wait(&smem.k_full[next.place], next.parity);
  };
  if constexpr (asks<D, consumers, X>) wait_for_next(own.start + 1 >= own.stop);

#pragma unroll 1
  for (int step = own.start + 1; step < own.stop; step++) {
    [[maybe_unused]] const bool last = step + 1 == own.stop;
    const Ring<stages<D, X>> before = ring;
    ring.advance();
    if constexpr (asks<D, consumers, X>) {
      next.advance();
    } else {
      mbarrier_wait(&smem.k_full[ring.place], ring.parity);
      mbarrier_wait(&smem.v_full[before.place], before.parity);
    }
    watch_step("1. S = Q K^T; beside it O += P V of the tile before");
    wgmma_fence();
    start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
    start_sum<D, Bc>(o_reg, p_reg, smem.v[before.place]);
    const int j = keys_of(step);
    wgmma_wait<1>(s_reg);
    if constexpr (asks<D, consumers, X>)
      mbarrier_wait(&smem.k_full[ring.place], ring.parity);  // over; no result depends on it
    release(smem.k_empty[ring.place]);
    const bool above = make_x(j);
    if constexpr (!o_first<D, consumers, X>) {
      float correction[1][2] = {{1, 1}};
      if (above) raise_max(correction);
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
      if (above) raise();
      lazy_softmax::watch_rows(state, rows, o_reg);
      bool there = true;
      if constexpr (asks<D, consumers, X>) there = next_is_there(last);
      lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
      if (!there) wait_for_next(last);
    }
  }

  mbarrier_wait(&smem.v_full[ring.place], ring.parity);
  watch_step("3. O += P V");
  wgmma_fence();
  start_sum<D, Bc>(o_reg, p_reg, smem.v[ring.place]);
  wgmma_wait<0>(o_reg);
  lazy_softmax::watch_rows(state, rows, o_reg);
  release(smem.v_empty[ring.place]);
  ring.advance();
  if constexpr (!X::blocks) let_pass(own.stop, order.steps());

  watch_step("O / l and LSE");
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = first_row + 8 * h + lane / 4;
    const RowEnd of_row = end_of_row(rows.m[0][h], rows.l(0, h), sink, tile.head % p.heads);
    if (lane % 4 == 0 && row < p.seq_q) lse[lse_row + row] = of_row.lse;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      for (int c = 0; c < 2; c++) o_reg[0][n][2 * h + c] *= of_row.factor;
  }
  uint32_t o_half[1][D / 16][4];
  swizzled_tile::round_fragments<T, D>(o_half, o_reg);
  swizzled_tile::store_fragments<Br, D>(smem.q[q.place] + warp_row * page_row, o_half, 0);
  fence_proxy_async();
  __syncwarp();  // the warp's rows of O are in shared memory
  release(smem.o_full[q.place]);
}

template <class T, int D, int consumers, class X>
__global__ void __launch_bounds__(threads<consumers>, 1)
    forward(const __grid_constant__ ForwardMaps maps, Problem p, TileList<Br<consumers>> tiles,
            int* taken,  // how many of the list; null if each thread block has one and that is all
            typename X::Score score,
            float* lse,         // [B, H, Nq]
            const float* sink,  // [H], or none
            Lists<X> lists) {
  constexpr int Br = on_hopper::Br<consumers>;
  Shared<T, D, consumers, X>& smem = *dynamic_shared<Shared<T, D, consumers, X>, tile_alignment>();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) {
      mbarrier_init(&smem.q_full[i], 1);
      mbarrier_init(&smem.q_empty[i], 1);
      mbarrier_init(&smem.o_full[i], 4 * consumers);  // their warps
    }
    for (int i = 0; i < stages<D, X>; i++) {
      mbarrier_init(&smem.k_full[i], 1);
      mbarrier_init(&smem.v_full[i], 1);
      mbarrier_init(&smem.k_empty[i], 4 * consumers);
      mbarrier_init(&smem.v_empty[i], 4 * consumers);
    }
    fence_mbarrier_init();
  }
  grid_dependency_wait();  // what the kernel before this one wrote is in global memory: the count, or Q, K and V
  if constexpr (X::blocks)
    if (*lists.wrong) return;
  __syncthreads();  // the mbarriers are there

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  Ring<stages<D, X>> ring;
  Ring<2> q;
  Work work = {};
  if (warpgroup == consumers) {
    setmaxnreg_dec<producer_registers<consumers, X>>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp == 0 && elect_one()) {
      const auto find = [&](int index) {
        if constexpr (X::packed) {
          work = work_of(p, lists, tiles, index);
          return work.tile.head >= 0;
        } else {
          return tiles.get(work.tile, index);
        }
      };
      int index = blockIdx.x;
      for (; find(index); index = taken ? atomicAdd(taken, 1) : INT_MAX, q.advance()) {
        announce(smem, index, work, q);
        load(smem, maps, p, work, ring, q, lists);
      }
      announce(smem, index, work, q);
      mbarrier_arrive(&smem.q_full[q.place]);  // no tile is left
    } else if (warp == 1 && elect_one()) {
      for (; next(smem, tiles, work, q); q.advance()) {
        mbarrier_wait(&smem.o_full[q.place], q.parity);
        store_tile<X, D, Br, Br>(maps.o, smem.q[q.place], work.tile.i0, rows_of_queries<X>(p, work));
        bulk_commit();
        bulk_wait_read<0>();  // O has been read: its place may be filled again, and the block may end
        mbarrier_arrive(&smem.q_empty[q.place]);
      }
    }
  } else {
    setmaxnreg_inc<consumer_registers<consumers, X>>();
    for (; next(smem, tiles, work, q); q.advance())
      attend(smem, p, shared_by_lanes<X>(work), ring, q, score, lse, sink, lists);
  }
}

static __global__ void take_first(int* taken, int blocks) {
  grid_dependency_wait();  // nobody counts any more in the kernel before this one
  watch_step("each thread block takes its first tile");
  *taken = blocks;
}

// Whether what a row sees ends beside its own position. Then the first rows of a head see the fewest keys: their tiles
// are the shortest, and come last.
inline bool ends(const Problem& p) {
  const int right = p.mask == attention::Mask::causal ? 0 : p.window_right;
  return right >= 0 && right < p.seq_k;
}

// Whether the tiles of all rows should be done first with two consumers. (With one, chapter 10 has a kernel, too. It
// would be half as much machine code again here, for problems that do not fill the GPU.)
inline bool two_consumers(const Problem& p) {
  // A tile's time, as a share of that with three consumers. With two it is more than two thirds, since K and V come to
  // shared memory as often.
  return 0.8 * attention::rounds_of_tiles(p, 2 * wgmma_rows) < attention::rounds_of_tiles(p, 3 * wgmma_rows);
}

template <class T, int D, int consumers, class X>
void launch_forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  constexpr int Br = on_hopper::Br<consumers>, Bc = on_hopper::Bc<D, X>;
  const auto [q, k, v, o] = attention::views_of<T>(p, args);
  const ForwardMaps maps = {tile_map<Br>(p, q, p.heads, p.seq_q, p.total_q),
                            tile_map<Bc>(p, k, p.kv_heads, p.seq_k, p.total_k),
                            tile_map<Bc>(p, v, p.kv_heads, p.seq_k, p.total_k),
                            tile_map<Br>(p, o, p.heads, p.seq_q, p.total_q), nothing_map<Bc>(p, k)};
  TileList<Br> tiles = attention::all_tiles<Br>(p, attention::heads_that_run_together(p));
  tiles.mask =
      X::blocks || ends(p) ? attention::Mask::causal : attention::Mask::none;  // the last rows first, or the first ones
  const int most =
      p.packed ? p.heads * attention::tiles_of_head(p, p.seq_q, p.total_q, Br) : tiles.heads * tiles.row_tiles;
  const int blocks = std::min(multiprocessors(), most);
  int* const taken = most == blocks ? nullptr : static_cast<int*>(args.workspace);
  Lists<X> lists;
  if constexpr (X::packed) {
    tiles.round_heads = std::min(tiles.round_heads, p.heads);
    lists = list_queries(p, args, Br, blocks, stream);
  }
  if constexpr (X::blocks) lists = check_lists(p, args, blocks, stream);
  if (taken && !X::packed && !X::blocks) launch_dependent(take_first, {1, 1, 0, stream}, taken, blocks);
  launch_dependent(forward<T, D, consumers, X>,
                   {unsigned(blocks), threads<consumers>, sizeof(Shared<T, D, consumers, X>), stream}, maps, p, tiles,
                   taken, typename X::Score(p, args.alibi), args.lse, args.sink, lists);
}

template <class X>
void run_forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    if constexpr (X::packed)  // one kernel: of a tile in which a sequence ends, a consumer without rows has little to
                              // do
      launch_forward<T, D, 3, X>(p, args, stream);
    else if constexpr (X::blocks)  // a tile of the mask has the rows of two consumers
      launch_forward<T, D, 2, X>(p, args, stream);
    else
      (two_consumers(p) ? launch_forward<T, D, 2, X> : launch_forward<T, D, 3, X>)(p, args, stream);
  });
}

}  // namespace variants::on_hopper
