// The backward of this chapter on Hopper: two loops of chapter 10, without shares, with what models add where extras.h
// says that it is wanted. Where has_columns says so it is that of 28_deferred_backward.cu and 29_columns_backward.cu,
// else that of 21_shared_backward.cu. Read it beside those: what is not about views, windows or scores is the same, but
// for two things. Thread blocks are persistent, as chapter 10's forwards are. And a block looks for its next turn while
// its sum is on its way.
//
//   prepare    what the gradients need of each query (backward_rows.h)
//   gradients  a thread block takes one tile of Bc = 128 keys after the other, and owns their gradients; Q and dO pass
//              by in tiles of Br rows, of all query heads that read this kv head, in each from the last tile that sees
//              one of the keys down to the first
//   of_sinks   the sinks' gradients (backward_rows.h)
//
// A block of `gradients` is a producer (one thread that copies) and two consumers (warpgroups with 64 keys each).
// Without columns:
//
//   1. S^T = K Q^T, dP^T = V dO^T             64 x Br each, K and V as A from shared memory
//   2. P^T = 2^(score(S^T) - LSE)             at D = 64 while dP^T is multiplied; stays in registers, as A of dV
//      dS^T = P^T o slope o (dP^T - delta)    stays in registers, as A of dK, and goes to shared memory, transposed
//   3. dV += P^T dO                           and meanwhile both consumers wait until dS of all keys is there
//   4. dQ^T = K^T dS^T                        64 x 64 of it, over the keys of both consumers
//      dK += dS^T Q                           and meanwhile dQ goes to shared memory
//
// With columns LSE and delta are further columns of Q and dO: S - LSE and dP - delta are what the products add up, and
// no thread loads LSE and delta, unless a tile has left some out. And dQ of a tile is made beside dV and dK of the next
// one, so that a consumer rarely waits for the other one's dS. Only dQ of a block's last tile comes right behind its
// own dV and dK.
//
// Two other warps of the producer's warpgroup, one for each consumer, bring dQ to memory when it is their turn. Where
// these keys are the last to add, the consumers add what was added up before, and dQ leaves rounded.
//
// Window: the first to add to a tile of dQ has the first keys that a row of the tile sees, and the last one the last
// keys. Tile c of keys begins with queries that no tile before it sees, and goes down. So it comes to each tile of
// queries later than those whose turns are before its own, and waits the less, the fewer tiles of a head run together.
//
// Packed: the producer looks up whose keys they are. Tiles of queries are counted as first_tile() does: those of a
// sequence, within a head, begin with `first_tile`.
//
// Blocks: the producer and those that bring dQ to memory walk through the lists of the block's column, from the last
// tile down as well. The producer tells the consumers with each tile of queries which it is.
//
// At D = 128 a window of 1024 keys is 18 tiles of queries. To begin and to end takes as long as three of them. That is
// why blocks are persistent: K and V of the next keys come while dK and dV leave.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <variant>

#include "attention/dispatch.h"
#include "attention/schedule.h"
#include "backward_rows.h"
#include "device/bulk_copy.h"
#include "device/dependent_launch.h"
#include "device/elect.h"
#include "device/further_columns.h"
#include "device/limits.h"
#include "device/mbarrier.h"
#include "device/named_barrier.h"
#include "device/numeric.h"
#include "device/proxy_fence.h"
#include "device/ring.h"
#include "device/semaphore.h"
#include "device/setmaxnreg.h"
#include "device/swizzled_tile.h"
#include "device/warpgroup_backward.h"
#include "device/watch.h"
#include "extras.h"
#include "hopper.h"
#include "packed.h"

namespace variants::on_hopper {

namespace of_backward {

using namespace warpgroup_backward;

constexpr int consumers = 2, threads = warpgroup_threads * (consumers + 1);
constexpr int Bc = wgmma_rows * consumers;  // keys of a thread block, wgmma_rows to a consumer

constexpr int part_size = 64 * 64;  // a consumer's part of a tile of dQ: 64 columns of 64 queries
static_assert(dq_parts == consumers);

// 65536 registers are 168 for each of 384 threads, in multiples of 8: 24 + 2 * 240 = 56 + 2 * 224 = 3 * 168.
template <class X>
constexpr int producer_registers = X::blocks ? 56 : 24;  // to walk through lists takes more
template <class X>
constexpr int consumer_registers = X::blocks ? 224 : 240;

template <int D_>
struct Shape {
  static constexpr int D = D_, Bc = of_backward::Bc;
  static constexpr int Br = query_rows(D);  // of a tile: S^T and dP^T take Br / 2 registers each
  static constexpr int threads = 256;       // of prepare
};

// What there is to do with a tile of keys: Bc of a kv head from j0 on, the query heads that read it, and of each of
// them the tiles of queries that see one of the keys, if there are any.
struct Work {
  int kv_head, j0, first_head, last_head;  // over all batches; kv_head < 0: no work is left
  Tiles queries;
  int head_tiles;   // of all queries of a head
  int ended;        // the first tile of queries that sees keys after these; known where there is no window
  unsigned before;  // tiles of queries that came to this block before these
  Sequence of;      // of a packed problem, and its first tile within each head
  int first_tile;
};

// The problem that the work is of.
template <class X>
__device__ Problem problem_of(const Problem& p, const Work& work) {
  return X::packed ? alone(p, work.of) : p;
}

// The number of a tile of queries, over all heads.
template <class X>
__device__ size_t number_of(const Work& work, int head, int i) {
  return size_t(head) * work.head_tiles + (X::packed ? work.first_tile : 0) + i;
}

// The rows of a head's queries, and of its keys.
template <class X>
__device__ HeadOfBatch rows_of_queries(const Problem& p, const Work& work, int head) {
  if constexpr (X::packed) return {head, work.of.begin_q, work.of.seq_q};
  return {head, p.heads};
}
template <class X>
__device__ HeadOfBatch rows_of_keys(const Problem& p, const Work& work) {
  if constexpr (X::packed) return {work.kv_head, work.of.begin_k, work.of.seq_k};
  return {work.kv_head, p.kv_heads};
}

// The same, for the compiler too: all lanes of a warp have it from one of them, so it has its place in the registers
// that a warp shares, and a loop reads no shared memory for it.
template <class X>
__device__ Work shared_by_lanes(const Work& work) {
  const auto of = [](auto x) { return __shfl_sync(0xffffffff, x, 0); };
  Work shared = {of(work.kv_head),
                 of(work.j0),
                 of(work.first_head),
                 of(work.last_head),
                 {of(work.queries.start), of(work.queries.stop)},
                 of(work.head_tiles),
                 of(work.ended),
                 of(work.before),
                 {},
                 0};
  if constexpr (X::packed) {
    shared.of = {of(work.of.index), of(work.of.begin_q), of(work.of.begin_k), of(work.of.seq_q), of(work.of.seq_k)};
    shared.first_tile = of(work.first_tile);
  }
  return shared;
}

// With a block mask, `queries` are the steps of all its heads together, and the walk says which each of them is.
template <int Br>
__device__ QueryWalk<Bc, Br, true> walk_of(const Problem& p, const BlockLists& lists, const Work& work) {
  return {lists, p, work.j0 / Bc, work.last_head + 1};
}

// The work of a ticket.
template <class X, int Br>
__device__ Work work_of(Problem p, const Lists<X>& lists, int round_heads, int ticket) {
  constexpr Work none = {-1, 0, 0, 0, {0, 0}, 0, 0, 0, {}, 0};
  Sequence of = {};
  if constexpr (X::packed) {
    const auto [b, index] = lists.find(ticket, p.kv_heads);
    if (b < 0) return none;
    of = lists.of(b);
    ticket = index;
  } else if (ticket >= p.batch * p.kv_heads * ceil_div(p.seq_k, Bc)) {
    return none;
  }
  const int head_tiles = attention::tiles_of_head(p, p.seq_q, p.total_q, Br);
  if constexpr (X::packed) p = alone(p, of);
  const attention::KeyTile keys = attention::key_tile<Bc, Br>(p, round_heads, ticket);
  const int end = keys.j0 + Bc;
  if constexpr (X::blocks) {
    Work work = {keys.kv_head, keys.j0, keys.first_head, keys.first_head + keys.heads - 1, {}, keys.head_tiles, 0, 0,
                 {},           0};
    work.queries = {0, walk_of<Br>(p, lists, work).count(work.first_head)};
    return work;
  }
  return {keys.kv_head,
          keys.j0,
          keys.first_head,
          keys.first_head + keys.heads - 1,
          X::window ? query_tiles<Br>(p, keys.j0, Bc) : Tiles{keys.start, keys.head_tiles},
          X::packed ? head_tiles : keys.head_tiles,
          end < p.seq_k ? p.first_query(end) / Br : keys.head_tiles,
          0,
          of,
          attention::first_tile(of.begin_q, of.index, Br)};
}

// Whether LSE and delta are further columns of Q and dO, and dQ of a tile is made beside dV and dK of the next one. A
// softcap is a function of S alone, and cannot have S - LSE. ALiBi was slower with columns alone; with a later dQ it
// has not been tried. A kernel for packed sequences or a block mask has too few registers.
template <class X>
constexpr bool has_columns = std::is_same_v<typename X::Score, Linear> && !X::packed && !X::blocks;

// What a consumer needs of the queries of a tile.
template <int Br>
struct Statistics {
  float lse[Br], row_sum[Br];
};
template <class X, class T, int Br>
using OfQueries = std::conditional_t<has_columns<X>, FurtherColumns<T, Br>, Statistics<Br>>;

template <class X, class T, int D, bool columns = has_columns<X>>
struct Shared {
  static constexpr int Br = Shape<D>::Br;
  T k[Bc * D], v[Bc * D];             // each tile in D / 64 pages of 128 bytes a row, swizzled
  T q[2][Br * D], d_o[2][Br * D];     // two tiles, as all that follows
  T ds[2][Br * Bc];                   // dS in two pages, each for the keys of one consumer
  float dq[2][consumers][part_size];  // fragments of dQ^T
  OfQueries<X, T, Br> of_queries[2];
  int ticket;    // of the first work
  Work work[2];  // of K and V, and of those before or after, in turn
  Mbarrier kv_full, kv_empty, full[2], empty[2], columns_full, columns_empty, ds_full[2], ds_empty[2],
      dq_full[2][consumers], dq_ready[2][consumers];
};
// The same with columns, in front: a product reads eight of 16 columns twice, which compute-sanitizer takes for as many
// bytes more.
template <class X, class T, int D>
struct Shared<X, T, D, true> {
  static constexpr int Br = Shape<D>::Br;
  OfQueries<X, T, Br> of_queries[1];
  int ticket;
  Work work[2];
  Mbarrier kv_full, kv_empty, full[2], empty[2], columns_full, columns_empty, ds_full[2], ds_empty[2],
      dq_full[2][consumers], dq_ready[2][consumers];
  alignas(tile_alignment) T k[Bc * D];
  T v[Bc * D];
  T q[2][Br * D], d_o[2][Br * D];
  T ds[2][Br * Bc];
  float dq[2][consumers][part_size];
};

// Behind it, of a block mask, what the producer tells the consumers of a tile of queries.
template <class X, class T, int D>
__device__ QueryStep& told(Shared<X, T, D>& smem, unsigned place) {
  return reinterpret_cast<QueryStep*>(&smem + 1)[place];
}

struct Maps {
  TensorMap q;    // of Q [B, H, Nq, D], in boxes of Br rows
  TensorMap k;    // of K [B, Hkv, Nk, D], in boxes of Bc rows
  TensorMap v;    // of V, likewise
  TensorMap d_o;  // of dO, as of Q
  TensorMap dq;   // of dQ, likewise, in boxes of 64 rows
  TensorMap dk;   // of dK, as of K, in boxes of 16 rows
  TensorMap dv;   // of dV, likewise
};

// Whether there is more work, once it is known.
template <class X, class T, int D>
__device__ bool next(Shared<X, T, D>& smem, const Ring<1>& kv) {
  mbarrier_wait(&smem.kv_full, kv.parity);
  return smem.work[kv.parity].kv_head >= 0;
}

// Which turn a tile of keys has at adding to a tile of queries, and whether it is the last one. Those whose keys a row
// of the tile sees add in their order. Without a window they begin with the first keys of all.
template <class X, int Br>
__device__ Turn turn_at(const Problem& p, const Work& work, int tile) {
  if constexpr (!X::window) return {work.j0 / Bc, tile < work.ended};
  const SeenKeys seen = seen_by<X>(p, tile * Br, min(tile * Br + Br, p.seq_q) - 1);
  return {work.j0 / Bc - seen.begin / Bc, work.j0 + Bc >= seen.end};
}

// Starts the copies of tile i of a head's queries, which is the step-th of this block. One thread.
template <class X, class T, int D>
__device__ __forceinline__ void load_queries(Shared<X, T, D>& smem, const Maps& maps, unsigned step, int i,
                                             const HeadOfBatch& of, const OfQueries<X, T, Shape<D>::Br>* of_tile) {
  constexpr int Br = Shape<D>::Br, bytes = sizeof(*of_tile);
  Mbarrier* const full = &smem.full[step % 2];
  mbarrier_arrive_expect_tx(full, 2 * Br * D * sizeof(T) + (has_columns<X> ? 0 : bytes));
  load_tile<X, D, Br>(smem.q[step % 2], maps.q, full, i * Br, of);
  load_tile<X, D, Br>(smem.d_o[step % 2], maps.d_o, full, i * Br, of);
  if constexpr (has_columns<X>) {
    mbarrier_wait(&smem.columns_empty, step % 2 ^ 1);
    mbarrier_arrive_expect_tx(&smem.columns_full, bytes);
    bulk_load(&smem.of_queries[0], of_tile, bytes, &smem.columns_full);
  } else {
    bulk_load(&smem.of_queries[step % 2], of_tile, bytes, full);
  }
}

// Starts the copies of a tile of keys and of its queries. One thread.
template <class X, class T, int D>
__device__ __forceinline__ void load(Shared<X, T, D>& smem, const Maps& maps, const Problem& p,
                                     const OfQueries<X, T, Shape<D>::Br>* of_queries, const Work& work, unsigned& step,
                                     [[maybe_unused]] const Lists<X>& lists) {
  constexpr int Br = Shape<D>::Br;
  const HeadOfBatch kv_head = rows_of_keys<X>(p, work);
  mbarrier_arrive_expect_tx(&smem.kv_full, 2 * Bc * D * sizeof(T));
  load_tile<X, D, Bc>(smem.k, maps.k, &smem.kv_full, work.j0, kv_head);
  load_tile<X, D, Bc>(smem.v, maps.v, &smem.kv_full, work.j0, kv_head);
  if constexpr (X::blocks) {
    const auto walk = walk_of<Br>(p, lists, work);
#pragma unroll 1
    for (WalkPlace at = walk.first(work.first_head); walk.exists(at); at = walk.after(at), step++) {
      const QueryStep its = walk.step(at);
      mbarrier_wait(&smem.empty[step % 2], step / 2 % 2 ^ 1);
      told(smem, step % 2) = its;
      load_queries(smem, maps, step, its.tile, rows_of_queries<X>(p, work, its.head),
                   of_queries + number_of<X>(work, its.head, its.tile));
    }
  } else {
#pragma unroll 1
    for (int head = work.first_head; head <= work.last_head; head++) {
      const HeadOfBatch of = rows_of_queries<X>(p, work, head);
      auto of_tile = of_queries + number_of<X>(work, head, work.queries.stop);
#pragma unroll 1
      for (int i = work.queries.stop - 1; i >= work.queries.start; i--, step++) {
        mbarrier_wait(&smem.empty[step % 2], step / 2 % 2 ^ 1);
        load_queries(smem, maps, step, i, of, --of_tile);
      }
    }
  }
}

// Stores or adds a consumer's parts of dQ, each when it is this block's turn. One thread.
template <class X, class T, int D>
__device__ __forceinline__ void add_dq(Shared<X, T, D>& smem, const TensorMap& dq_map, const Problem& whole,
                                       float* dq_sum, int* turns, Work work, int consumer, Ring<2>& ring,
                                       [[maybe_unused]] const Lists<X>& lists) {
  constexpr int Br = Shape<D>::Br, bytes = part_size * sizeof(float);
  const Problem p = problem_of<X>(whole, work);
  // A tile of this block, and the turn that the block has at it
  struct Place {
    int head, i;
    Turn turn;
    std::conditional_t<X::blocks, WalkPlace, std::monostate> walk = {};  // where it is in the lists
  };
  const auto place_of = [&](int head, int i) -> Place { return {head, i, turn_at<X, Br>(p, work, i)}; };
  [[maybe_unused]] const auto listed = [&](const WalkPlace& at) -> Place {
    if constexpr (X::blocks) {
      const auto walk = walk_of<Br>(p, lists, work);
      if (!walk.exists(at)) return {at.head, 0, {}, at};
      const QueryStep step = walk.step(at);
      return {step.head, step.tile, step.turn, at};
    } else {
      return {};
    }
  };
  const auto exists = [&](const Place& at) { return at.head <= work.last_head; };
  const auto after = [&](const Place& at) {
    if (!exists(at)) return at;
    if constexpr (X::blocks) return listed(walk_of<Br>(p, lists, work).after(at.walk));
    return at.i > work.queries.start ? place_of(at.head, at.i - 1) : place_of(at.head + 1, work.queries.stop - 1);
  };
  // The consumer's part of a tile's dQ
  const auto part_of = [&](const Place& at) { return number_of<X>(work, at.head, at.i) * consumers + consumer; };
  // Makes the place for a part ready: it is empty, or if this is the last part, the sum of the others comes to it, as
  // soon as it is this block's turn. With `wait`, waits for the turn; without, returns false if it has not come.
  const auto prepare = [&](const Place& at, int room, bool wait) {
    Mbarrier* ready = &smem.dq_ready[room][consumer];
    if (!at.turn.last || at.turn.number == 0) {
      mbarrier_arrive(ready);
      return true;
    }
    const size_t part = part_of(at);
    if (!wait && semaphore_peek(turns + part) != at.turn.number) return false;
    semaphore_wait(turns + part, at.turn.number);
    fence_proxy_async_global();
    mbarrier_arrive_expect_tx(ready, bytes);
    bulk_load(smem.dq[room][consumer], dq_sum + part * part_size, bytes, ready);
    return true;
  };

  if (work.queries.stop <= work.queries.start) return;
  Place at;
  if constexpr (X::blocks)
    at = listed(walk_of<Br>(p, lists, work).first(work.first_head));
  else
    at = place_of(work.first_head, work.queries.stop - 1);
  Place second = after(at), third = after(second);
  int ahead = 0;     // so many are ready, from `at` on
  bool due = false;  // the turn at `at` has been seen
#pragma unroll 1
  for (; exists(at); ahead--, ring.advance()) {
    const float* dq = smem.dq[ring.place][consumer];
    const size_t part = part_of(at);
    if (ahead == 0) prepare(at, ring.place, true), ahead = 1;
    if (ahead == 1 && exists(second) && prepare(second, ring.place ^ 1, false)) ahead = 2;
    mbarrier_wait(&smem.dq_full[ring.place][consumer], ring.parity);
    if (at.turn.last) {
      const BoxPlace box =
          box_at<X, 64>(at.i * Br + (D == 128 ? 0 : consumer * 64), rows_of_queries<X>(p, work, at.head));
      tensor_store(dq_map, dq, D == 128 ? consumer * 64 : 0, box.row, box.head, box.batch);
    } else if (at.turn.number == 0) {
      bulk_store(dq_sum + part * part_size, dq, bytes);
    } else {
      if (!due) semaphore_wait(turns + part, at.turn.number);
      bulk_add(dq_sum + part * part_size, dq, bytes);
    }
    bulk_commit();
    bulk_wait_read<0>();
    if (ahead == 2 && exists(third) && prepare(third, ring.place, false)) ahead = 3;
    due = exists(second) && semaphore_peek(turns + part_of(second)) == second.turn.number;
    bulk_wait<0>();   // the sum is in global memory, and the next block may have its turn
    fence_acq_rel();  // and what was peeked at counts
    semaphore_set(turns + part, at.turn.number + 1);
    at = second, second = third, third = after(third);  // nobody waits for this thread now
  }
}

__device__ __forceinline__ void make_exponentials(float (&x)[4]) {
  for (int r = 0; r < 4; r++) x[r] = exp2_approx(x[r]);  // beside a product, in machine code too
}

// A warp's 2^12 P^T in the place of S^T, and P^T times the slope of the score, which is another array only where there
// is one. With `ahead` the exponentials come before the mask, which then hides P and not S: ptxas moves nothing across
// the mask's branch, so they stay beside a product. Two arrays are too many for that.
template <class X, bool ahead, int queries>
__device__ __forceinline__ void make_p(float (&x)[1][queries / 8][4], float (&sloped)[1][queries / 8][4],
                                       const typename X::Score& function, const Problem& p,
                                       const float* lse,  // [queries] in shared memory
                                       Where at, [[maybe_unused]] bool is_cut,
                                       [[maybe_unused]] const Bits<1, queries / 8>& bits) {
  static_assert(!(ahead && X::Score::has_slope));
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const auto lse_of = [&](int n) { return *reinterpret_cast<const float2*>(lse + 8 * n + 2 * t); };
  const int distance = at.row + p.seq_k - p.seq_q - at.key;  // from the warp's first key to its first query
  with_score(function, x, distance - 15, distance + queries - 1, [&](const auto& score) {
    const float own = distance + 2 * t - g;  // from key g to query 2 t
#pragma unroll
    for (int n = 0; n < queries / 8; n++) {
      const float2 l = lse_of(n);
      for (int r = 0; r < 4; r++) {
        x[0][n][r] = less(score, x[0][n][r], own, 8 * (r / 2) - (8 * n + r % 2), r % 2 ? l.y : l.x);
      }
      if constexpr (ahead) make_exponentials(x[0][n]);
      // Else ptxas begins more series than it has registers for
      if (X::Score::has_series && n % 4 == 3) __syncwarp();  // no result depends on it
    }
    return true;
  });
  hide_transpose<X, queries>(x, p, at, ahead ? 0 : -INFINITY);
  if constexpr (X::blocks)
    if (is_cut) bits.hide(x, ahead ? 0 : -INFINITY);
  if constexpr (!ahead)
#pragma unroll
    for (int n = 0; n < queries / 8; n++) {
      const float2 l = lse_of(n);
      for (int r = 0; r < 4; r++) {
        const float score = x[0][n][r] + (r % 2 ? l.y : l.x);
        x[0][n][r] = exp2_approx(x[0][n][r]);
        if constexpr (X::Score::has_slope) sloped[0][n][r] = x[0][n][r] == 0 ? 0 : x[0][n][r] * function.slope(score);
      }
    }
}

// The same in the place of S^T - LSE / c. `lse` is null, unless the columns have left out some LSE.
template <class X, int queries>
__device__ __forceinline__ void make_p_of_columns(float (&x)[1][queries / 8][4], const Problem& p, const float* lse,
                                                  Where at) {
  const float scale_log2 = p.scale * log2_e;
#pragma unroll
  for (int n = 0; n < queries / 8; n++)
    for (int r = 0; r < 4; r++) x[0][n][r] *= scale_log2;
  if (lse) subtract_left_out<queries>(x, lse, scale_log2, 1);
#pragma unroll
  for (int n = 0; n < queries / 8; n++) make_exponentials(x[0][n]);
  hide_transpose<X, queries>(x, p, at, 0);
}

// A consumer's 64 keys.
template <class X, class T, int D>
__device__ __forceinline__ void differentiate(Shared<X, T, D>& smem, const Maps& maps, const Problem& whole, Work work,
                                              const typename X::Score& scores, [[maybe_unused]] const float* stats,
                                              [[maybe_unused]] const Lists<X>& lists) {
  constexpr int Br = Shape<D>::Br;
  const Problem p = problem_of<X>(whole, work);
  const int64_t q_rows = X::packed ? p.total_q : p.seq_q, k_rows_of_head = X::packed ? p.total_k : p.seq_k;
  const int warp_key = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 keys
  const int consumer = warp_key / wgmma_rows, lane = threadIdx.x % 32;
  const int j = work.j0 + warp_key;
  const Watched kv_rows = {work.kv_head * k_rows_of_head + work.of.begin_k + j, 0, p.seq_k - j, D};
  [[maybe_unused]] const T *k_rows = smem.k + consumer * wgmma_rows * page_row,
                           *v_rows = smem.v + consumer * wgmma_rows * page_row;
  // Of dQ^T, at D = 128 each consumer makes 64 of the columns of all queries, at D = 64 all columns of 64 queries.
  const T* k_columns = smem.k + (D == 128 ? consumer * Bc * page_row : 0);
  const int first_query = D == 128 ? 0 : consumer * 64;

  // This warp no longer needs K and V: those of the next work may come.
  const auto release_kv = [&] {
    if (lane == 0) mbarrier_arrive(&smem.kv_empty);
  };

  const auto scale = [&] { return has_columns<X> ? p.scale / ds_factor<T> : p.scale; };  // of dQ and dK
  float dv_reg[1][D / 8][4] = {}, dk_reg[1][D / 8][4] = {};
  // A tile of queries: the nth that came to this block. It and the one before it are in the two places of shared
  // memory.
  struct Tile {
    unsigned n;
    int head, i;
    __device__ unsigned place() const { return n % 2; }
    __device__ unsigned parity() const { return n / 2 % 2; }
  };
  const auto first_row_of = [&](const Tile& at) { return at.head * q_rows + work.of.begin_q + at.i * Br; };

  const auto start_dq_of = [&](const Tile& at, float(&dq_reg)[1][8][4]) {
    start_dq<Bc, Br>(dq_reg, k_columns, smem.ds[at.place()] + first_query * page_row);
  };
  [[maybe_unused]] const auto start_dq_once_stored = [&](const Tile& at, float(&dq_reg)[1][8][4]) {
    mbarrier_wait(&smem.ds_full[at.place()], at.parity());
    wgmma_fence();
    start_dq_of(at, dq_reg);
  };
  // dQ of a tile, to where another warp takes it from.
  const auto hand_over = [&](const Tile& at, float(&dq_reg)[1][8][4]) {
    const unsigned place = at.place();
    watch_transpose("dQ", {first_row_of(at) + first_query, warp_key % D, p.seq_q - at.i * Br - first_query, 16}, dq_reg,
                    scale());
    mbarrier_wait(&smem.dq_ready[place][consumer], at.parity());
    float4* dq = reinterpret_cast<float4*>(smem.dq[place][consumer]) + threadIdx.x % warpgroup_threads;
    Turn turn;
    if constexpr (X::blocks)
      turn = told(smem, place).turn;
    else
      turn = turn_at<X, Br>(p, work, at.i);
    if (turn.last) {
      if (turn.number > 0) {
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
        for (int r = 0; r < 4; r++) dq_reg[0][n][r] *= scale();
      uint32_t dq_half[1][4][4];
      swizzled_tile::round_fragments<T, 64>(dq_half, dq_reg);
      swizzled_tile::store_transpose<64, 64>(reinterpret_cast<T*>(smem.dq[place][consumer]), dq_half,
                                             threadIdx.x / 32 % 4);
    } else {
#pragma unroll
      for (int n = 0; n < 8; n++)
        dq[n * warpgroup_threads] = make_float4(dq_reg[0][n][0], dq_reg[0][n][1], dq_reg[0][n][2], dq_reg[0][n][3]);
    }
    fence_proxy_async();
    __syncwarp();  // the warp's part of dQ is in shared memory
    if (lane == 0) mbarrier_arrive(&smem.dq_full[place][consumer]);
  };

  unsigned n = work.before;                                   // tiles that came to this block before the next one
  if constexpr (X::blocks) work.last_head = work.first_head;  // all steps are counted as those of one
#pragma unroll 1
  for (int head_of_loop = work.first_head; head_of_loop <= work.last_head; head_of_loop++) {
    const typename X::Score score = scores.of_head(X::packed ? work.of.index * p.heads + head_of_loop : head_of_loop);
#pragma unroll 1
    for (int step = work.queries.stop - 1; step >= work.queries.start; step--, n++) {
      const unsigned place = n % 2, parity = n / 2 % 2;
      int head = head_of_loop, i = step;
      Where at = {0, j};
      [[maybe_unused]] bool is_cut = false;
      [[maybe_unused]] Bits<1, Br / 8> bits;
      if constexpr (X::blocks) {
        mbarrier_wait(&smem.full[place], parity);
        const QueryStep its = told(smem, place);
        head = its.head, i = its.tile;
        is_cut = its.cut >= 0;
        // They come while S is multiplied.
        if (is_cut) bits.load(lists.bits_of_keys(its.cut), warp_key, i * Br % BlockMask::tile);
      }
      at.row = i * Br;
      const T *q = smem.q[place], *d_o = smem.d_o[place];
      const Tile tile = {n, head, i};
      const Watched watched = {first_row_of(tile), j, p.seq_q - i * Br, p.seq_k - j};

      watch_step("1. S = Q K^T, dP = dO V^T");  // transposed
      float p_reg[1][Br / 8][4], ds_reg[1][Br / 8][4];
      mbarrier_wait(&smem.full[place], parity);
      [[maybe_unused]] bool any_left_out = false;
      [[maybe_unused]] const auto stats_of_tile = [&] { return stats + number_of<X>(work, head, i) * 2 * Br; };
      if constexpr (has_columns<X>) {
        mbarrier_wait(&smem.columns_full, place);
        uint32_t first_key = consumer * wgmma_rows;
        pin(first_key);  // else ptxas makes each step's descriptors of K and V before the loop, and spills them
        start_s_and_dp<Bc, D, Br>(p_reg, ds_reg, smem.k + first_key * page_row, smem.v + first_key * page_row, q, d_o,
                                  smem.of_queries[0]);
        any_left_out = smem.of_queries[0].any_left_out();
      } else {
        wgmma_fence();
        start_product<Bc, D, Br>(p_reg, k_rows, q);
        start_product<Bc, D, Br>(ds_reg, v_rows, d_o);
      }

      watch_step("2. P = exp(score(S) - LSE), dS = P slope (dP - delta)");  // transposed; dS to shared memory, too
      uint32_t p_half[1][Br / 16][4], ds_half[1][Br / 16][4];
      wgmma_wait<1>(p_reg);
      [[maybe_unused]] float sloped[1][Br / 8][4];
      [[maybe_unused]] const auto& of_queries = smem.of_queries[has_columns<X> ? 0 : place];
      if constexpr (has_columns<X>)
        make_p_of_columns<X, Br>(p_reg, p, any_left_out ? stats_of_tile() : nullptr, at);
      else
        make_p<X, D == 64 && !X::Score::has_slope, Br>(p_reg, sloped, score, p, of_queries.lse, at, is_cut, bits);
      swizzled_tile::round_fragments<T, Br>(p_half, p_reg);
      watch_transpose("P", watched, p_reg, 1 / p_factor);
      wgmma_wait<0>(ds_reg);
      if constexpr (has_columns<X>) {
        __syncwarp();  // all lanes have read whether anything is left out
        if (lane == 0) mbarrier_arrive(&smem.columns_empty);
        make_ds_of_columns<T, Br>(ds_reg, p_reg, any_left_out ? stats_of_tile() + Br : nullptr);
        watch_transpose("dS", watched, ds_reg, 1 / ds_factor<T>);
      } else {
        watch_transpose("dP", watched, ds_reg);
        make_ds<Br>(ds_reg, fragments_of(X::Score::has_slope ? sloped : p_reg), of_queries.row_sum);
        watch_transpose("dS", watched, ds_reg);
      }
      swizzled_tile::round_fragments<T, Br>(ds_half, ds_reg);
      if constexpr (has_columns<X>) mbarrier_wait(&smem.ds_empty[place], parity ^ 1);
      swizzled_tile::store_transpose<Br, Br>(smem.ds[place] + consumer * Br * page_row, ds_half, threadIdx.x / 32 % 4);
      fence_proxy_async();

      const bool is_last = head_of_loop == work.last_head && step == work.queries.start;
      float dq_reg[1][8][4];
      if constexpr (has_columns<X>) {
        __syncwarp();  // the warp's part of dS is in shared memory
        if (lane == 0) mbarrier_arrive(&smem.ds_full[place]);
        watch_step("3. dQ += dS K of the tile before, dV += P^T dO, dK += dS^T Q");
        const auto start_dv_and_dk = [&] {
          start_sum<D, Br>(dv_reg, p_half, d_o);
          start_sum<D, Br>(dk_reg, ds_half, q);
        };
        if (n > work.before) {
          const Tile before =
              step < work.queries.stop - 1 ? Tile{n - 1, head, step + 1} : Tile{n - 1, head - 1, work.queries.start};
          start_dq_once_stored(before, dq_reg);
          start_dv_and_dk();
          wgmma_wait<2>(dq_reg);
          if (lane == 0) mbarrier_arrive(&smem.ds_empty[before.place()]);
          hand_over(before, dq_reg);
        } else {
          wgmma_fence();
          start_dv_and_dk();
        }
        if (is_last) {
          start_dq_once_stored(tile, dq_reg);
          wgmma_wait<0>(dq_reg);
          if (lane == 0) mbarrier_arrive(&smem.ds_empty[place]);
          release_kv();
          hand_over(tile, dq_reg);
        }
      } else {
        watch_step("3. dV += P^T dO");
        wgmma_fence();
        start_sum<D, Br>(dv_reg, p_half, d_o);
        named_barrier_sync(1,
                           warpgroup_threads * consumers);  // dS is in shared memory, and dQ of the tile before is done
        watch_step("4. dQ += dS K, dK += dS^T Q");
        start_dq_of(tile, dq_reg);
        start_sum<D, Br>(dk_reg, ds_half, q);
        wgmma_wait<1>(dq_reg);
        if (is_last) release_kv();
        hand_over(tile, dq_reg);
      }
      wgmma_wait<0>(dv_reg, dk_reg);
      watch("dV", kv_rows, dv_reg, 1 / p_factor);
      watch("dK", kv_rows, dk_reg, scale());
      if (lane == 0) mbarrier_arrive(&smem.empty[place]);
    }
  }

  if (work.queries.start >= work.queries.stop) {
    __syncwarp();  // all lanes have read the work
    release_kv();
  }
  // By way of rows in the place of dS that no other warp uses: [16][D] in a tile of Bc
  T* const rows = smem.ds[0] + warp_key * page_row;
  static_assert(sizeof(smem.ds) >= Bc * D * sizeof(T));
  const auto leave = [&](const TensorMap& map, auto& x, float factor) {
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      for (int r = 0; r < 4; r++) x[0][n][r] *= factor;
    uint32_t half[1][D / 16][4];
    swizzled_tile::round_fragments<T, D>(half, x);
    swizzled_tile::store_fragments<Bc, D>(rows, half, 0);
    fence_proxy_async();
    __syncwarp();  // the warp's rows are in shared memory
    if (lane == 0 && j < p.seq_k) {
      store_tile<X, D, 16, Bc>(map, rows, j, rows_of_keys<X>(p, work));
      bulk_commit();
      bulk_wait_read<0>();
    }
    __syncwarp();  // they have been read: their place may be filled again, and the block may end
  };
  named_barrier_sync(1, warpgroup_threads * consumers);  // everyone is done with dS
  leave(maps.dv, dv_reg, 1 / p_factor);
  leave(maps.dk, dk_reg, scale());
  named_barrier_sync(1, warpgroup_threads * consumers);  // dS may take the place of dK
}

// prepare() of backward_rows.h, and the columns.
template <class X, class T, int D>
__global__ void prepare_columns(Problem p,
                                View<const T> o,                         // [B, H, Nq, D]
                                const float* lse,                        // [B, H, Nq]
                                View<const T> d_o,                       // [B, H, Nq, D]
                                float* stats,                            // [B * H * tiles][2][Br]
                                OfQueries<X, T, Shape<D>::Br>* columns,  // [B * H * tiles]
                                int* turns,                              // [B * H * tiles][parts]
                                int* tickets,
                                View<T> dq)  // [B, H, Nq, D]
{
  const PreparedRow own = prepare_row<T, Shape<D>, dq_parts>(p, o, lse, d_o, stats, turns, tickets, dq, {});
  // The Q and dO of a row that does not exist are 0, and so is all that a finite P makes of it.
  store_columns(columns[own.tile], own.row, own.lane == 0, own.exists ? -own.statistics.lse / (p.scale * log2_e) : 0,
                -own.statistics.row_sum * p_factor);
}

template <class T, int D, class X>
__global__ void __launch_bounds__(threads, 1)
    gradients(const __grid_constant__ Maps maps, Problem p, int round_heads, typename X::Score score,
              const float* stats,                               // [B * H * tiles][2][Br], of LSE, then of delta
              const OfQueries<X, T, Shape<D>::Br>* of_queries,  // [B * H * tiles]: the same, as the loop reads it
              float* dq_sum,  // [B * H * tiles][consumers][8][128][4]: fragments of dQ^T of their threads
              int* turns,     // [B * H * tiles][consumers]: the turn that may add to dq_sum
              int* tickets,   // drawn so far
              Lists<X> lists) {
  constexpr int Br = Shape<D>::Br;
  Shared<X, T, D>& smem = *dynamic_shared<Shared<X, T, D>, tile_alignment>();
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.kv_full, 1);
    mbarrier_init(&smem.columns_full, 1);
    mbarrier_init(&smem.columns_empty, 4 * consumers);         // their warps
    mbarrier_init(&smem.kv_empty, 4 * consumers + consumers);  // their warps, and those that bring their dQ to memory
    for (int i = 0; i < 2; i++) {
      mbarrier_init(&smem.full[i], 1);
      for (Mbarrier* all : {&smem.empty[i], &smem.ds_full[i], &smem.ds_empty[i]})
        mbarrier_init(all, 4 * consumers);  // their warps
      for (int consumer = 0; consumer < consumers; consumer++) {
        mbarrier_init(&smem.dq_full[i][consumer], 4);
        mbarrier_init(&smem.dq_ready[i][consumer], 1);
      }
    }
    fence_mbarrier_init();
  }
  grid_dependency_wait();  // what the kernel before this one has written is in global memory
  if constexpr (X::blocks)
    if (*lists.wrong) return;
  if (threadIdx.x == 0) smem.ticket = atomicAdd(tickets, 1);
  __syncthreads();  // the mbarriers are there, and the ticket

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  Ring<1> kv;
  if (warpgroup == consumers) {
    setmaxnreg_dec<producer_registers<X>>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp == consumers && elect_one()) {
      unsigned step = 0;
      for (int ticket = smem.ticket;; ticket = atomicAdd(tickets, 1), kv.advance()) {
        Work& work = smem.work[kv.parity];  // everyone has taken the last but one from it
        work = work_of<X, Br>(p, lists, round_heads, ticket);
        work.before = step;
        mbarrier_wait(&smem.kv_empty, kv.parity ^ 1);
        if (work.kv_head < 0) break;
        load(smem, maps, p, of_queries, work, step, lists);
      }
      mbarrier_arrive(&smem.kv_full);
    } else if (warp < consumers && elect_one()) {
      Ring<2> ring;
      for (; next(smem, kv); kv.advance()) {
        const Work work = smem.work[kv.parity];
        mbarrier_arrive(&smem.kv_empty);  // this thread is done with the work before, and has this one
        add_dq<X>(smem, maps.dq, p, dq_sum, turns, work, warp, ring, lists);
      }
    }
  } else {
    setmaxnreg_inc<consumer_registers<X>>();
    for (; next(smem, kv); kv.advance())
      differentiate<X>(smem, maps, p, shared_by_lanes<X>(smem.work[kv.parity]), score, stats, lists);
  }
}

}  // namespace of_backward

// As in chapter 10. With a block mask blocks of one head wait for one another as with a causal mask: a block has few
// steps, whatever the list is. With a window they wait, too, and of a head they read no more than a window's queries:
// so more heads go together.
template <class X>
int heads_in_a_round(Problem p) {
  if constexpr (X::blocks) p.mask = attention::Mask::causal;
  constexpr int measured = 4096;  // keys of a window
  if (X::window && int64_t(p.window_left) + p.window_right <= measured)
    return std::min(p.batch * p.kv_heads, p.head_dim > 64 ? 16 : 32);
  return attention::kv_heads_that_share_the_l2(p);
}

template <class X>
void run_backward(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    using S = of_backward::Shape<D>;
    const attention::BackwardTiles<S> tiles(p);
    using OfQueries = of_backward::OfQueries<X, T, S::Br>;
    static_assert(!of_backward::has_columns<X> || sizeof(OfQueries) == columns_bytes(S::Br));
    const auto [dq_sum, stats, turns, tickets] = attention::BackwardWorkspace::of(args.workspace, tiles, dq_parts);
    char* const columns = static_cast<char*>(args.workspace) + before_columns(p, S::Br);
    auto* const of_queries =
        reinterpret_cast<OfQueries*>(of_backward::has_columns<X> ? columns : reinterpret_cast<char*>(stats));
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::views_of<T>(p, args);
    const of_backward::Maps maps = {
        tile_map<S::Br>(p, q, p.heads, p.seq_q, p.total_q),    tile_map<S::Bc>(p, k, p.kv_heads, p.seq_k, p.total_k),
        tile_map<S::Bc>(p, v, p.kv_heads, p.seq_k, p.total_k), tile_map<S::Br>(p, d_o, p.heads, p.seq_q, p.total_q),
        tile_map<64>(p, dq, p.heads, p.seq_q, p.total_q),      tile_map<16>(p, dk, p.kv_heads, p.seq_k, p.total_k),
        tile_map<16>(p, dv, p.kv_heads, p.seq_k, p.total_k)};
    Sequences sequences;
    Lists<X> lists;
    if constexpr (X::packed) sequences = lists = list_keys(p, args, tickets + 1, S::Bc, stream);
    const LaunchConfig rows = {tiles.row_blocks, S::threads, 0, stream};
    if constexpr (of_backward::has_columns<X>)
      launch(of_backward::prepare_columns<X, T, D>, rows, p, o, args.lse, d_o, stats, of_queries, turns, tickets, dq);
    else
      launch(prepare<T, S, dq_parts>, rows, p, o, args.lse, d_o, stats, turns, tickets, dq, sequences);
    if constexpr (X::blocks)
      lists = check_lists(p, args, tickets + 1, stats, int64_t(tiles.q_tiles) * 2 * S::Br, stream);
    // Four at least, so that blocks come before their turns on the engine, too, which may run one at a time.
    const unsigned blocks = std::min(unsigned(std::max(4, multiprocessors())), tiles.key_blocks);
    launch_grid(of_backward::gradients<T, D, X>,
                {blocks, of_backward::threads, sizeof(of_backward::Shared<X, T, D>) + X::blocks * 2 * sizeof(QueryStep),
                 stream},
                Blocks::dependent, maps, p, heads_in_a_round<X>(p), typename X::Score(p, args.alibi), stats, of_queries,
                dq_sum, turns, tickets, lists);
    if (p.sink)
      launch(of_sinks<S>, {unsigned(p.heads), sink_threads, 0, stream}, p, args.sink, stats, args.d_sink, sequences);
  });
}

}  // namespace variants::on_hopper
