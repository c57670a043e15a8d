// The backward of this chapter: chapter 08's last (4_ordered_backward.cu), with what models add where extras.h says
// that it is wanted. Read it beside that file.
//
//   prepare    a few lanes per query: log2(e) LSE and delta = rowsum(dO o O); zeros in dQ for rows that see no key
//   gradients  a thread block owns Bc rows of K and V and their gradients; Q and dO pass by in tiles of Br rows, of all
//              query heads that read this kv head, in each the tiles that see a key of the block
//   of_sinks   a thread block per head: what each row adds to the sink's gradient
//
// Each of a block's rows belongs to one warp or one pair of warps, 32 rows to each. For each tile that passes by:
//
//   S^T = K Q^T      P^T = 2^(score(S^T) - LSE)             dV += P^T dO       32 x Br, P^T from registers
//   dP^T = V dO^T    dS^T = P^T o slope o (dP^T - delta)    dK += dS^T Q       likewise; dS^T also to shared memory
//   dQ of the tile before = dS K                                               32 x 32 of it a warp, added to others'
//
// At D = 64 a warp does all of it, at D = 128 a pair shares it, as in chapter 07: P^T travels through shared memory,
// and brings the slope of the score along.
//
// With a window the tiles of queries end, too, and may be none. So tiles are counted by the steps of the block and not
// by their own number, and the first block to add to a tile of dQ is not the head's first any more.
#pragma once

#include <cmath>
#include <cstdint>

#include "attention/backward_workspace.h"
#include "attention/padded.h"
#include "device/atomic_add.h"
#include "device/backward_pairs.h"
#include "device/semaphore.h"
#include "extras.h"

namespace variants {

using attention::BackwardArgs;
using backward_pairs::end_tile_of_pair;
using backward_pairs::Role;
using backward_tile::p_factor;
using namespace swizzled_tile;

constexpr size_t place_bytes = 2 * sizeof(int);  // of shared memory, for the block's place

template <class T>
struct BackwardTensors {
  View<const T> q;     // [B, H, Nq, D]
  View<const T> k;     // [B, Hkv, Nk, D]
  View<const T> v;     // [B, Hkv, Nk, D]
  View<const T> d_o;   // [B, H, Nq, D]
  View<T> dq;          // [B, H, Nq, D]
  View<T> dk;          // [B, Hkv, Nk, D]
  View<T> dv;          // [B, Hkv, Nk, D]
  const float* alibi;  // [B, H]
  const float* stats;  // [B * H * tiles][2][Br], of LSE, then of delta
  float* dq_sum;       // [B * H * tiles][warps][8][32][4]: fragments (2 x 4 of 16 x 8) of 32 lanes
  int* turns;          // [B * H * tiles][warps]: how many blocks have added to dq_sum
  int* tickets;        // drawn so far
  int kv_tiles;        // tiles of a kv head
  int head_tiles;      // tiles of a query head
};

// How many kv heads the tickets go round, as in chapter 08: many if blocks of a head begin at different tiles.
__device__ inline int heads_at_once(const Problem& p) {
  return p.mask == attention::Mask::causal || p.window_right >= 0 ? 64 : 16;
}

// Tiles of a head's queries of which a row sees one of these keys, from `start` up to `stop`; those of keys of which a
// row of these queries sees one.
struct Tiles {
  int start, stop;
};
template <int Br>
__device__ Tiles query_tiles(const Problem& p, int first_key, int keys) {
  const int last_key = min(first_key + keys, p.seq_k) - 1;
  return {p.queries_of(first_key).first / Br, ceil_div(p.queries_of(last_key).end, Br)};
}
template <int Bc>
__device__ Tiles key_tiles(const Problem& p, int first_row, int rows) {
  const int last_row = min(first_row + rows, p.seq_q) - 1;
  return {p.keys_of(first_row).first / Bc, ceil_div(p.keys_of(last_row).end, Bc)};
}

// Which tile of queries a block is at.
struct Place {
  int head;        // over the whole batch
  int tile;        // of this head
  int seen, stop;  // key tiles of other blocks are before the one and from the other on
};

// Adds the warp's part of dQ of a tile.
template <class S, class T>
__device__ void add_dq(const Problem& p, const BackwardTensors<T>& tensors, const float (&dq_reg)[2][4][4], int kv_tile,
                       const Place& at) {
  constexpr int D = S::D;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const size_t tile = size_t(at.head) * tensors.head_tiles + at.tile;
  float4* sum = reinterpret_cast<float4*>(tensors.dq_sum) + (tile * S::warps + warp) * 8 * 32 + lane;  // [8][32]
  if (kv_tile == at.stop - 1) {
    const int i0 = at.tile * S::Br + warp / (D / 32) * 32 + g;
    const int64_t stride = tensors.dq.strides.row;
    T* to = tensors.dq.head(at.head, p.heads) + i0 * stride + warp % (D / 32) * 32 + 2 * t;
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < 4; n++) {
        const float* x = dq_reg[b][n];
        const float4 others = kv_tile == at.seen ? make_float4(0, 0, 0, 0) : sum[(b * 4 + n) * 32];
        if (i0 + 16 * b < p.seq_q)
          *reinterpret_cast<uint32_t*>(to + 16 * b * stride + 8 * n) =
              pack2<T>((others.x + x[0]) * p.scale, (others.y + x[1]) * p.scale);
        if (i0 + 16 * b + 8 < p.seq_q)
          *reinterpret_cast<uint32_t*>(to + (16 * b + 8) * stride + 8 * n) =
              pack2<T>((others.z + x[2]) * p.scale, (others.w + x[3]) * p.scale);
      }
  } else {
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < 4; n++) {
        const float* x = dq_reg[b][n];
        float4* to = sum + (b * 4 + n) * 32;
        if (kv_tile == at.seen)
          *to = make_float4(x[0], x[1], x[2], x[3]);
        else
          atomic_add_4(&to->x, x);
      }
  }
}

// D / 8 lanes per query row, 8 elements each.
template <class T, class S>
__global__ void prepare(Problem p,
                        View<const T> o,    // [B, H, Nq, D]
                        const float* lse,   // [B, H, Nq]
                        View<const T> d_o,  // [B, H, Nq, D]
                        float* stats,       // [B * H * tiles][2][Br]
                        int* turns,         // [B * H * tiles][warps]
                        int* tickets,
                        View<T> dq)  // [B, H, Nq, D]
{
  constexpr int D = S::D, Br = S::Br, lanes = D / 8;
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x, row = thread / lanes, lane = thread % lanes;
  const unsigned head_tiles = ceil_div(p.seq_q, Br), tile = row / Br, head = tile / head_tiles;
  const unsigned i = tile % head_tiles * Br + row % Br;
  const T* const o_row = o.head(head, p.heads) + i * o.strides.row + lane * 8;
  const T* const d_o_row = d_o.head(head, p.heads) + i * d_o.strides.row + lane * 8;
  const bool exists = i < unsigned(p.seq_q);
  const backward_tile::RowStatistics of_row =
      backward_tile::row_statistics<D>(exists, o_row, d_o_row, lse + size_t(head) * p.seq_q + i);
  if (exists && p.keys_of(i).end <= p.keys_of(i).first)
    store_pack8(dq.head(head, p.heads) + (i * dq.strides.row + lane * 8), Pack8<T>{});
  if (lane == 0) {
    stats[(size_t(tile) * 2) * Br + row % Br] = of_row.lse;
    stats[(size_t(tile) * 2 + 1) * Br + row % Br] = of_row.row_sum;
    if (row % Br < S::warps) turns[size_t(tile) * S::warps + row % Br] = 0;
  }
  if (thread == 0) *tickets = 0;
}

// What a warp's score function and mask are told of its 32 keys and a tile of queries.
struct Where {
  int row, key;  // the first of each
};

// A warp's 2^12 P^T in the place of S^T, for 32 keys and `queries` queries; the mask is looked at only if it hides any.
// With a slope, times_slope becomes P^T times it.
template <int queries, class X>
__device__ void make_p(float (&x)[2][queries / 8][4], float (*times_slope)[queries / 8][4],
                       const typename X::Score& score, const Problem& p,
                       const float* lse,  // [queries] in shared memory
                       Where at) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int own = at.row + 2 * t + p.seq_k - p.seq_q - at.key - g;  // the distance from key g to query 2 t
  const Problem::Span of_first = p.keys_of(at.row), of_last = p.keys_of(at.row + queries - 1);
  const bool hides = at.key + 32 > of_first.end || (X::window && at.key < of_last.first);
#pragma unroll
  for (int n = 0; n < queries / 8; n++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const Problem::Span seen = hides ? p.keys_of(at.row + 8 * n + 2 * t + e) : Problem::Span{};
      const float l = lse[8 * n + 2 * t + e];
#pragma unroll
      for (int b = 0; b < 2; b++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          float& of_pair = x[b][n][2 * h + e];
          const int key = at.key + 16 * b + 8 * h + g;
          const float made = score(of_pair, own + 8 * n + e - 16 * b - 8 * h);
          const bool hidden = hides && (key >= seen.end || (X::window && key < seen.first));
          of_pair = hidden ? 0 : exp2_approx(made - l);
          if constexpr (X::Score::has_slope) times_slope[b][n][2 * h + e] = of_pair * score.slope(made);
        }
    }
}

// The products of one tile of queries (but for dQ) with the warp's 32 keys: those of its role.
template <class S, class X, Role role, class T>
__device__ void multiply_tile(float (&dv_reg)[2][S::D / 8][4], float (&dk_reg)[2][S::D / 8][4],
                              const T* k,          // [32][D] in shared memory, as all that follows
                              const T* v,          // [32][D]
                              const T* q,          // [Br][D]
                              const T* d_o,        // [Br][D]
                              const float* stats,  // [2][Br]
                              T* ds,               // [32][64]; of a pair, also Br / 32 pages of its P^T
                              const Problem& p, const typename X::Score& score,
                              int pair,      // of warps, counted over the block
                              Where at,      // the tile's first query, and the warp's first key
                              Watched tile,  // queries, and the warp's 32 keys
                              Watched rows)  // of dV and dK
{
  constexpr int Bc = S::Bc, Br = S::Br, D = S::D, chunk = S::chunk;
  // Where one warp of a pair leaves fragment [b][n] of P^T for the other: 512 bytes in a row, 32 queries to a page.
  const auto p_smem = [&](int b, int n) -> float4& {
    return reinterpret_cast<float4*>(ds + n / 4 * Bc * page_row)[(n % 4 * 2 + b) * 32 + threadIdx.x % 32];
  };
#pragma unroll
  for (int c = 0; c < Br; c += chunk) {
    const Watched watched = {tile.row + c, tile.column, tile.rows - c, tile.columns};
    float p_reg[2][chunk / 8][4];                                // S^T, then P^T
    float slope_reg[X::Score::has_slope ? 2 : 1][chunk / 8][4];  // P^T times the slope of the score
    float ds_reg[2][chunk / 8][4];                               // dP^T, then dS^T
    uint32_t p_half[2][chunk / 16][4];                           // P^T as A fragments of T
    uint32_t ds_half[2][chunk / 16][4];                          // and dS^T
    const auto for_ds = [&](int b, int n) {
      const float* x = X::Score::has_slope ? slope_reg[X::Score::has_slope ? b : 0][n] : p_reg[b][n];
      return make_float4(x[0], x[1], x[2], x[3]);
    };
    if (role != Role::ds_and_dk) {
      watch_step("S = Q K^T, P = exp(score(S) - LSE)");
      multiply_by_transpose<Bc, Br, D, chunk>(p_reg, k, q + c * page_row);
      make_p<chunk, X>(p_reg, slope_reg, score, p, stats + c, {at.row + c, at.key});
      watch_transpose("P", watched, p_reg, 1 / p_factor);
      if (S::pairs) {
#pragma unroll
        for (int n = 0; n < chunk / 8; n++)
          for (int b = 0; b < 2; b++) p_smem(b, n) = for_ds(b, n);
        named_barrier_arrive(1 + pair, 64);  // P^T is there; whoever takes it may come later
      }
      round_fragments<T, chunk>(p_half, p_reg);
    }
    if (role != Role::p_and_dv) {
      watch_step("dP = dO V^T, dS = P slope (dP - delta)");
      multiply_by_transpose<Bc, Br, D, chunk>(ds_reg, v, d_o + c * page_row);
      watch_transpose("dP", watched, ds_reg);
      if (S::pairs) {
        named_barrier_sync(1 + pair, 64);  // P^T is in shared memory
        backward_tile::make_ds<chunk>(ds_reg, p_smem, stats + Br);
        __syncwarp();  // all lanes have P^T, and dS^T may take its place
      } else {
        backward_tile::make_ds<chunk>(ds_reg, for_ds, stats + Br + c);
      }
      watch_transpose("dS", watched, ds_reg);
      round_fragments<T, chunk>(ds_half, ds_reg);
      store_fragments<Bc, chunk>(ds, ds_half, c / 16);
    }
    watch_step("dV += P^T dO, dK += dS^T Q");
    // Both sums come after dS: until then P^T in fp32 occupies registers that their operands need.
    if (role != Role::ds_and_dk) add_product<Br, D, chunk>(dv_reg, p_half, d_o + c * page_row);
    if (role != Role::p_and_dv) add_product<Br, D, chunk>(dk_reg, ds_half, q + c * page_row);
  }
  if (role != Role::ds_and_dk) watch("dV", rows, dv_reg, 1 / p_factor);
  if (role != Role::p_and_dv) watch("dK", rows, dk_reg, p.scale);
}

template <class T, class S, class X>
__global__ void __launch_bounds__(S::threads, S::blocks) gradients(Problem p, BackwardTensors<T> tensors) {
  constexpr int D = S::D, Bc = S::Bc, Br = S::Br;
  T* k_smem = dynamic_shared<T>();       // [Bc][D]
  T* v_smem = k_smem + Bc * D;           // [Bc][D]
  T* q_smem = v_smem + Bc * D;           // [2 stages][Q and dO][Br][D]
  T* ds_smem = q_smem + 2 * 2 * Br * D;  // [2 stages][Bc][64], dS^T; of a pair, first P^T
  float* stats_smem = reinterpret_cast<float*>(ds_smem + 2 * S::ds_stage);  // [2 stages][2][Br]

  int* place_smem = reinterpret_cast<int*>(stats_smem + 2 * 2 * Br);  // [2]
  if (threadIdx.x == 0) {
    const int n = heads_at_once(p), all = p.batch * p.kv_heads;
    const int ticket = atomicAdd(tensors.tickets, 1), round = ticket / (n * tensors.kv_tiles);
    const int heads = min(n, all - round * n), turn = ticket - round * n * tensors.kv_tiles;
    place_smem[0] = round * n + turn % heads;
    place_smem[1] = turn / heads;
  }
  __syncthreads();  // the place is known
  const int kv_head = place_smem[0], kv_tile = place_smem[1];
  const int warp = threadIdx.x / 32;
  const int pair = warp % S::key_warps, own = pair * 32;  // the first of this warp's keys, in the block
  const bool makes_ds = !S::pairs || warp >= S::key_warps, makes_p = !S::pairs || !makes_ds;
  const int j0 = kv_tile * Bc, group = p.heads / p.kv_heads;
  const Tiles queries = query_tiles<Br>(p, j0, Bc);  // of each head of the group
  const int steps = queries.stop > queries.start ? group * (queries.stop - queries.start) : 0;

  // The place at the next step: the next tile, or the first of the next head.
  const auto place = [&](int head, int tile) -> Place {
    const Tiles keys = key_tiles<Bc>(p, tile * Br, Br);
    return {head, tile, keys.start, keys.stop};
  };
  const auto after = [&](const Place& at) {
    return at.tile + 1 < queries.stop ? place(at.head, at.tile + 1) : place(at.head + 1, queries.start);
  };
  const auto copy_stage = [&](int step, const Place& at) {
    if (step < steps) {
      T* to = q_smem + step % 2 * 2 * Br * D;
      const int i0 = at.tile * Br;
      const View<const T>&q = tensors.q, &d_o = tensors.d_o;
      copy_tile<Br, D, S::threads>(to, q.head(at.head, p.heads) + i0 * q.strides.row, p.seq_q - i0, q.strides.row);
      copy_tile<Br, D, S::threads>(to + Br * D, d_o.head(at.head, p.heads) + i0 * d_o.strides.row, p.seq_q - i0,
                                   d_o.strides.row);
      if (threadIdx.x < 2 * Br / 4)
        cp_async_16(stats_smem + step % 2 * 2 * Br + threadIdx.x * 4,
                    tensors.stats + (size_t(at.head) * tensors.head_tiles + at.tile) * 2 * Br + threadIdx.x * 4);
    }
    cp_async_commit();
  };
  copy_tile<Bc, D, S::threads>(k_smem, tensors.k.head(kv_head, p.kv_heads) + j0 * tensors.k.strides.row, p.seq_k - j0,
                               tensors.k.strides.row);
  copy_tile<Bc, D, S::threads>(v_smem, tensors.v.head(kv_head, p.kv_heads) + j0 * tensors.v.strides.row, p.seq_k - j0,
                               tensors.v.strides.row);
  Place at = place(kv_head * group, queries.start), before = at;
  copy_stage(0, at);

  // Whose turn it is to add this warp's part of a tile: kv tile by kv tile, from the first that a row of it sees.
  // Chapter 07, 8_final.cu, has a picture.
  const bool first_lane = threadIdx.x % 32 == 0;
  const auto semaphore = [&](const Place& of) {
    return tensors.turns + (size_t(of.head) * tensors.head_tiles + of.tile) * S::warps + warp;
  };
  int seen = 0;
  const auto pass_turn = [&](bool has_added, const Place& added, const Place& next) {
    __syncwarp();  // all lanes have added to tile `added`, in global memory
    if (first_lane) {
      seen = semaphore_peek(semaphore(next));
      fence_acq_rel();
      if (has_added) semaphore_set(semaphore(added), kv_tile + 1 - added.seen);
    }
  };
  // dQ of a tile whose dS is in shared memory.
  const auto make_dq = [&](int step, const Place& of) {
    watch_step("dQ += dS K");
    float dq_reg[2][4][4];
    const int right = 2 * (warp % (D / 32));
    multiply_transpose<Bc>(dq_reg, ds_smem + step % 2 * S::ds_stage, warp / (D / 32), k_smem, right, right + 1);
    watch("dQ", backward_pairs::watched_dq<S>(of.head * tensors.head_tiles + of.tile, p.seq_q), dq_reg, p.scale);
    const int turn = kv_tile - of.seen;
    if (first_lane && seen != turn) semaphore_wait(semaphore(of), turn);
    __syncwarp();  // it is this warp's turn in global memory
    add_dq<S>(p, tensors, dq_reg, kv_tile, of);
  };

  float sums[S::pairs ? 1 : 2][2][D / 8][4] = {};  // dV and dK of 32 keys, or one of them
  auto &dv_reg = sums[0], &dk_reg = sums[S::pairs ? 0 : 1];

  Place added = at;  // of a pair's warp that makes no dS: the tile that it added to last, if it did
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    const Place next = after(at);
    cp_async_wait<0>();
    // This stage (and K and V) and dS of the tile before are in shared memory, and everyone is done with the stage
    // before and with dS of the tile before that.
    __syncthreads();
    copy_stage(step + 1, next);

    if (makes_ds && step > 0) make_dq(step - 1, before);
    const auto multiply = [&]<Role role>() {
      const T* q_tile = q_smem + step % 2 * 2 * Br * D;
      const int i0 = at.tile * Br;
      const typename X::Score score(p, tensors.alibi, at.head);
      multiply_tile<S, X, role>(dv_reg, dk_reg, k_smem + own * page_row, v_smem + own * page_row, q_tile,
                                q_tile + Br * D, stats_smem + step % 2 * 2 * Br,
                                ds_smem + step % 2 * S::ds_stage + own * page_row, p, score, pair, {i0, j0 + own},
                                {int64_t(at.head) * p.seq_q + i0, j0 + own, p.seq_q - i0, p.seq_k - j0 - own},
                                {int64_t(kv_head) * p.seq_k + j0 + own, 0, p.seq_k - j0 - own, D});
    };
    if constexpr (!S::pairs)
      multiply.template operator()<Role::all>();
    else if (makes_p)
      multiply.template operator()<Role::p_and_dv>();
    else
      multiply.template operator()<Role::ds_and_dk>();
    if (makes_ds) {
      pass_turn(step > 0, before, at);
    } else if (step > 0) {
      pass_turn(step > 1, added, before);
      make_dq(step - 1, before);
      added = before;
    }
    end_tile_of_pair<S>(pair, makes_ds);
    before = at;
    at = next;
  }
  cp_async_wait<0>();
  __syncthreads();  // dS of the last tile is in shared memory, and without any tile K and V
  if (steps > 0) {
    if (!makes_ds) pass_turn(steps > 1, added, before);
    make_dq(steps - 1, before);
    __syncwarp();  // all lanes have added to the last tile, in global memory
    if (first_lane) {
      fence_acq_rel();
      semaphore_set(semaphore(before), kv_tile + 1 - before.seen);
    }
  }
  __syncthreads();  // everyone is done with K and V

  const int j = j0 + own;
  watch_step("dK and dV leave");
  if (makes_p)
    store_rows<Bc, D>(tensors.dv.head(kv_head, p.kv_heads) + j * tensors.dv.strides.row, v_smem + own * page_row,
                      dv_reg, 1 / p_factor, p.seq_k - j, tensors.dv.strides.row);
  if (makes_ds)
    store_rows<Bc, D>(tensors.dk.head(kv_head, p.kv_heads) + j * tensors.dk.strides.row, k_smem + own * page_row,
                      dk_reg, p.scale, p.seq_k - j, tensors.dk.strides.row);
}

// The sink is a key whose V is 0: P = exp(sink - LSE), dP = 0, and dS = P (0 - delta), over all rows of a head. The
// threads of a block take rows in turn and add up in one order.
constexpr int sink_threads = 256;
inline __global__ void __launch_bounds__(sink_threads) of_sinks(Problem p, int Br, const float* sink,  // [H]
                                                                const float* stats,  // [B * H * tiles][2][Br]
                                                                float* d_sink)       // [H]
{
  __shared__ float sums[sink_threads];
  const int head = blockIdx.x, rows = ceil_div(p.seq_q, Br) * Br;
  const float s = sink[head] * log2_e;
  float sum = 0;
  for (int b = 0; b < p.batch; b++)
    for (int i = threadIdx.x; i < rows; i += sink_threads) {
      const float* tile = stats + (size_t(b * p.heads + head) * rows + i / Br * Br) * 2;
      const float lse = tile[i % Br] + backward_tile::p_factor_exponent, delta = tile[Br + i % Br] * p_factor;
      sum -= exp2_approx(s - lse) * delta;  // a row that does not exist has an LSE of inf
    }
  sums[threadIdx.x] = sum;
  for (int half = sink_threads / 2; half > 0; half /= 2) {
    __syncthreads();  // all sums of the step before are there
    if (int(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) d_sink[head] = sums[0];
}

template <class X>
void run_backward(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_shape(p, place_bytes, [&]<class T, class S>() {
    const attention::BackwardTiles<S> tiles(p);
    const auto [dq_sum, stats, turns, tickets] = attention::BackwardWorkspace::of(args.workspace, tiles, S::warps);
    const View<T> dq = view<T>(p, args.dq, args.dq_strides, p.heads, p.seq_q);
    const View<const T> o = view<const T>(p, args.o, args.o_strides, p.heads, p.seq_q);
    const View<const T> d_o = view<const T>(p, args.d_o, args.d_o_strides, p.heads, p.seq_q);
    const BackwardTensors<T> tensors = {view<const T>(p, args.q, args.q_strides, p.heads, p.seq_q),
                                        view<const T>(p, args.k, args.k_strides, p.kv_heads, p.seq_k),
                                        view<const T>(p, args.v, args.v_strides, p.kv_heads, p.seq_k),
                                        d_o,
                                        dq,
                                        view<T>(p, args.dk, args.dk_strides, p.kv_heads, p.seq_k),
                                        view<T>(p, args.dv, args.dv_strides, p.kv_heads, p.seq_k),
                                        args.alibi,
                                        stats,
                                        dq_sum,
                                        turns,
                                        tickets,
                                        tiles.kv_tiles,
                                        tiles.head_tiles};
    launch(prepare<T, S>, {tiles.row_blocks, S::threads, 0, stream}, p, o, args.lse, d_o, stats, turns, tickets, dq);
    launch(gradients<T, S, X>, {tiles.key_blocks, S::threads, S::shared_bytes + place_bytes, stream}, p, tensors);
    if (p.sink) launch(of_sinks, {unsigned(p.heads), sink_threads, 0, stream}, p, S::Br, args.sink, stats, args.d_sink);
  });
}

// For tiles of 64 queries; those of 32 take no more.
inline size_t backward_workspace(const Problem& p) {
  return attention::BackwardWorkspace::bytes(p, 64, backward_pairs::Shape128::warps);
}

// A backward for D = 64 and 128 of kernels with these extras, beside views.
constexpr attention::Backward backward_for(void (*run)(const Problem&, const BackwardArgs&, cudaStream_t),
                                           unsigned extras) {
  return {.unsupported = not_for_the_loops,
          .workspace_bytes = backward_workspace,
          .run = run,
          .takes = attention::views | extras};
}

}  // namespace variants
