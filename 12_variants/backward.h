// The backward of this chapter on every GPU since the A100: chapter 08's last (4_ordered_backward.cu), with what models
// add where extras.h says that it is wanted. Read it beside that file. On Hopper, hopper_backward.h takes its place.
//
//   prepare    what the gradients need of each query (backward_rows.h)
//   gradients  a thread block owns Bc rows of K and V and their gradients; Q and dO pass by in tiles of Br rows, of all
//              query heads that read this kv head, in each the tiles that see a key of the block
//   of_sinks   the sinks' gradients (backward_rows.h)
//
// Each of a block's rows belongs to one warp or one pair of warps, 32 rows to each. For each tile that passes by:
//
//   S^T = K Q^T      P^T = 2^(score(S^T) - LSE)             dV += P^T dO       32 x Br, P^T from registers
//   dP^T = V dO^T    dS^T = P^T o slope o (dP^T - delta)    dK += dS^T Q       likewise; dS^T also to shared memory
//   dQ of the tile before = dS K                                               32 x 32 of it a warp, added to others'
//
// At D = 64 a warp does all of it, at D = 128 a pair shares it, as in chapter 07: P^T travels through shared memory.
// The slope is made of P, which knows its score: log2(P) + LSE. So it need not be kept, nor travel.
//
// If V has its own head dim, P^T dO and V dO^T have that one, and the other products that of Q and K.
//
// With a window the tiles of queries end, too, and may be none. So tiles are counted by the steps of the block and not
// by their own number, and the first block to add to a tile of dQ is not the head's first any more.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/backward_workspace.h"
#include "attention/padded.h"
#include "backward_rows.h"
#include "device/atomic_add.h"
#include "device/backward_pairs.h"
#include "device/limits.h"
#include "device/semaphore.h"
#include "extras.h"
#include "hopper.h"

namespace variants {

using backward_pairs::end_tile_of_pair;
using backward_pairs::Role;
using namespace swizzled_tile;

constexpr size_t place_bytes = 3 * sizeof(int);  // of shared memory, for the block's place
// With a block mask, that, and of its walk the next place, and what is known of the steps around.
struct KnownSteps {
  WalkPlace next;
  QueryStep of[8];  // by their number
};
constexpr size_t known_bytes = 4 * sizeof(int) + sizeof(KnownSteps);

// For a V with its own head dim, beside the shapes of device/backward_pairs.h. dK of 32 keys would take 192 registers
// of a thread. So a warp has 16 keys, and dK and dV take 160; each fragment of Q and dO serves one mma instead of two.
struct OwnVShape {
  static constexpr int D = own_v_head_dim, Bc = 128, Br = 32;
  static constexpr int blocks = 1, key_warps = 8, warps = key_warps, threads = 32 * warps;
  static constexpr bool pairs = false;
  static constexpr int chunk = 32, ds_stage = Bc * 64;  // as there
  static constexpr size_t shared_bytes =                // 153 KB
      ((Bc + 2 * Br) * (D + own_v_dim) + 2 * ds_stage) * sizeof(uint16_t) + 2 * 2 * Br * sizeof(float);
};
template <>
constexpr int dim_of_v<OwnVShape> = own_v_dim;

template <class S>
constexpr int keys_of_a_warp = S::Bc / S::key_warps;
template <class S>
constexpr int dq_parts_of = S::Br / 32 * (S::D / 32);  // of a tile, each made by a warp; a few warps may make none

template <class T, class Lists>
struct BackwardTensors {
  View<const T> q;     // [B, H, Nq, D]
  View<const T> k;     // [B, Hkv, Nk, D]
  View<const T> v;     // [B, Hkv, Nk, Dv]
  View<const T> d_o;   // [B, H, Nq, Dv]
  View<T> dq;          // [B, H, Nq, D]
  View<T> dk;          // [B, Hkv, Nk, D]
  View<T> dv;          // [B, Hkv, Nk, Dv]
  const float* alibi;  // [B, H]
  const float* stats;  // [B * H * tiles][2][Br], of LSE, then of delta
  float* dq_sum;       // [B * H * tiles][parts][8][32][4]: fragments (2 x 4 of 16 x 8) of 32 lanes
  int* turns;          // [B * H * tiles][parts]: how many blocks have added to dq_sum
  int* tickets;        // drawn so far
  int kv_tiles;        // tiles of a kv head
  int head_tiles;      // tiles of a query head
  Lists lists;
};

// How many kv heads the tickets go round, as in chapter 08: many if blocks of a head begin at different tiles.
__device__ inline int heads_at_once(const Problem& p) {
  const int right = p.mask == attention::Mask::causal ? 0 : p.window_right;
  return right >= 0 && right < p.seq_k ? 64 : 16;
}

// Adds the warp's part of dQ of a tile, counted over all heads; `keys` are the tiles of keys whose blocks do.
template <class S, class T, class Lists>
__device__ void add_dq(const Problem& p, const BackwardTensors<T, Lists>& tensors, const float (&dq_reg)[2][4][4],
                       int kv_tile, int tile, Tiles keys, int first_row, int first_tile) {
  constexpr int D = S::D;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  float4* sum = reinterpret_cast<float4*>(tensors.dq_sum) +
                (size_t(first_tile + tile) * dq_parts_of<S> + warp) * 8 * 32 + lane;  // [8][32]
  if (kv_tile == keys.stop - 1) {
    const int i0 = tile % tensors.head_tiles * S::Br + warp / (D / 32) * 32 + g;
    const unsigned head = tensors.dq.of_head(tile / tensors.head_tiles, p.heads, first_row) + warp % (D / 32) * 4;
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < 4; n++) {
        const float* x = dq_reg[b][n];
        const float4 others = kv_tile == keys.start ? make_float4(0, 0, 0, 0) : sum[(b * 4 + n) * 32];
        const int i = i0 + 16 * b;
        if (i < p.seq_q)
          *reinterpret_cast<uint32_t*>(tensors.dq.at_row(head + n, i) + 2 * t) =
              pack2<T>((others.x + x[0]) * p.scale, (others.y + x[1]) * p.scale);
        if (i + 8 < p.seq_q)
          *reinterpret_cast<uint32_t*>(tensors.dq.at_row(head + n, i + 8) + 2 * t) =
              pack2<T>((others.z + x[2]) * p.scale, (others.w + x[3]) * p.scale);
      }
  } else {
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < 4; n++) {
        const float* x = dq_reg[b][n];
        float4* to = sum + (b * 4 + n) * 32;
        if (kv_tile == keys.start)
          *to = make_float4(x[0], x[1], x[2], x[3]);
        else
          atomic_add_4(&to->x, x);
      }
  }
}

// A warp's 2^12 P^T in the place of S^T, for 16 * blocks keys and `queries` queries; the mask is looked at only if it
// hides any.
template <int queries, class X, int blocks>
__device__ void make_p(float (&x)[blocks][queries / 8][4], const typename X::Score& score, const Problem& p,
                       const float* lse,  // [queries] in shared memory
                       Where at) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const float own = at.row + 2 * t + p.seq_k - p.seq_q - at.key - g;  // the distance from key g to query 2 t
#pragma unroll
  for (int n = 0; n < queries / 8; n++)
    for (int b = 0; b < blocks; b++)
      for (int r = 0; r < 4; r++)
        x[b][n][r] = score(x[b][n][r], own + (8 * n + r % 2 - 16 * b - 8 * (r / 2))) - lse[8 * n + 2 * t + r % 2];
  hide_transpose<X, queries>(x, p, at, -INFINITY);
  if constexpr (X::blocks)
    if (at.bits) {
      Bits<blocks, queries / 8> bits;
      bits.load(at.bits, at.key % BlockMask::tile, at.row % BlockMask::tile);
      bits.hide(x, -INFINITY);
    }
#pragma unroll
  for (int b = 0; b < blocks; b++)
    for (int n = 0; n < queries / 8; n++)
      for (int r = 0; r < 4; r++) x[b][n][r] = exp2_approx(x[b][n][r]);
}

// Fragment n of P^T times the slope of the scores. The score is made of P once more, which knows it: it is log2(P) +
// LSE.
template <class X>
__device__ float4 times_slope(float4 p, const typename X::Score& score, const float* lse, int n) {
  if constexpr (!X::Score::has_slope) return p;
  const float2 l = *reinterpret_cast<const float2*>(lse + 8 * n + 2 * (threadIdx.x % 4));
  const auto sloped = [&](float x, float l) { return x == 0 ? 0 : x * score.slope(log2_approx(x) + l); };
  return make_float4(sloped(p.x, l.x), sloped(p.y, l.y), sloped(p.z, l.x), sloped(p.w, l.y));
}

// The products of one tile of queries (but for dQ) with the warp's keys: those of its role.
template <class S, class X, Role role, class T>
__device__ void multiply_tile(float (&dv_reg)[keys_of_a_warp<S> / 16][dim_of_v<S> / 8][4],
                              float (&dk_reg)[keys_of_a_warp<S> / 16][S::D / 8][4],
                              const T* k,          // [keys][D] in shared memory, as all that follows
                              const T* v,          // [keys][Dv]
                              const T* q,          // [Br][D]
                              const T* d_o,        // [Br][Dv]
                              const float* stats,  // [2][Br]
                              T* ds,               // [keys][64]; of a pair, also Br / 32 pages of its P^T
                              const Problem& p, const typename X::Score& score,
                              int pair,      // of warps, counted over the block
                              Where at,      // the tile's first query, and the warp's first key
                              Watched tile,  // queries, and the warp's keys
                              Watched rows)  // of dV and dK
{
  constexpr int Bc = S::Bc, Br = S::Br, D = S::D, Dv = dim_of_v<S>, chunk = S::chunk, blocks = keys_of_a_warp<S> / 16;
  // Where one warp of a pair leaves fragment [b][n] of P^T for the other: 512 bytes in a row, 32 queries to a page.
  const auto p_smem = [&](int b, int n) -> float4& {
    return reinterpret_cast<float4*>(ds + n / 4 * Bc * page_row)[(n % 4 * 2 + b) * 32 + threadIdx.x % 32];
  };
#pragma unroll
  for (int c = 0; c < Br; c += chunk) {
    const Watched watched = {tile.row + c, tile.column, tile.rows - c, tile.columns};
    float p_reg[blocks][chunk / 8][4];        // S^T, then P^T
    float ds_reg[blocks][chunk / 8][4];       // dP^T, then dS^T
    uint32_t p_half[blocks][chunk / 16][4];   // P^T as A fragments of T
    uint32_t ds_half[blocks][chunk / 16][4];  // and dS^T
    if (role != Role::ds_and_dk) {
      watch_step("S = Q K^T, P = exp(score(S) - LSE)");
      multiply_by_transpose<Bc, Br, D, chunk>(p_reg, k, q + c * page_row);
      make_p<chunk, X>(p_reg, score, p, stats + c, further<X>(at, c));
      watch_transpose("P", watched, p_reg, 1 / p_factor);
      if (S::pairs) {
#pragma unroll
        for (int n = 0; n < chunk / 8; n++)
          for (int b = 0; b < blocks; b++) p_smem(b, n) = backward_tile::fragments_of(p_reg)(b, n);
        named_barrier_arrive(1 + pair, 64);  // P^T is there; whoever takes it may come later
      }
      round_fragments<T, chunk>(p_half, p_reg);
    }
    if (role != Role::p_and_dv) {
      watch_step("dP = dO V^T, dS = P slope (dP - delta)");
      multiply_by_transpose<Bc, Br, Dv, chunk>(ds_reg, v, d_o + c * page_row);
      watch_transpose("dP", watched, ds_reg);
      if (S::pairs) {
        named_barrier_sync(1 + pair, 64);  // P^T is in shared memory
        backward_tile::make_ds<chunk>(
            ds_reg, [&](int b, int n) { return times_slope<X>(p_smem(b, n), score, stats, n); }, stats + Br);
        __syncwarp();  // all lanes have P^T, and dS^T may take its place
      } else {
        const auto fragments = backward_tile::fragments_of(p_reg);
        backward_tile::make_ds<chunk>(
            ds_reg, [&](int b, int n) { return times_slope<X>(fragments(b, n), score, stats + c, n); }, stats + Br + c);
      }
      watch_transpose("dS", watched, ds_reg);
      round_fragments<T, chunk>(ds_half, ds_reg);
      store_fragments<Bc, chunk>(ds, ds_half, c / 16);
    }
    watch_step("dV += P^T dO, dK += dS^T Q");
    // Both sums come after dS: until then P^T in fp32 occupies registers that their operands need.
    if (role != Role::ds_and_dk) add_product<Br, Dv, chunk>(dv_reg, p_half, d_o + c * page_row);
    if (role != Role::p_and_dv) add_product<Br, D, chunk>(dk_reg, ds_half, q + c * page_row);
  }
  if (role != Role::ds_and_dk) watch("dV", rows, dv_reg, 1 / p_factor);
  if (role != Role::p_and_dv) watch("dK", rows, dk_reg, p.scale);
}

template <bool condition, class A, class B>
__device__ auto& first_if(A& a, B& b) {
  if constexpr (condition)
    return a;
  else
    return b;
}

template <class T, class S, class X>
__global__ void __launch_bounds__(S::threads, S::blocks) gradients(Problem p, BackwardTensors<T, Lists<X>> tensors) {
  constexpr int D = S::D, Dv = dim_of_v<S>, Bc = S::Bc, Br = S::Br, stage_size = Br * (D + Dv);
  if constexpr (X::blocks)
    if (*tensors.lists.wrong) return;
  T* k_smem = dynamic_shared<T>();       // [Bc][D]
  T* v_smem = k_smem + Bc * D;           // [Bc][Dv]
  T* q_smem = v_smem + Bc * Dv;          // [2 stages] of Q [Br][D] and dO [Br][Dv]
  T* ds_smem = q_smem + 2 * stage_size;  // [2 stages][Bc][64], dS^T; of a pair, first P^T
  float* stats_smem = reinterpret_cast<float*>(ds_smem + 2 * S::ds_stage);  // [2 stages][2][Br]

  int* place_smem = reinterpret_cast<int*>(stats_smem + 2 * 2 * Br);  // [3]
  KnownSteps& known = *reinterpret_cast<KnownSteps*>(place_smem + 4);
  [[maybe_unused]] const auto walk_of = [&](int kv_head, int kv_tile) {
    if constexpr (X::blocks)
      return QueryWalk<Bc, Br, false>{tensors.lists, p, kv_tile, (kv_head + 1) * (p.heads / p.kv_heads)};
  };
  [[maybe_unused]] const auto know_next = [&](const auto& walk, int step) {  // the first thread
    known.of[step % 8] = walk.step(known.next);
    known.next = walk.after(known.next);
  };
  if (threadIdx.x == 0) {
    int ticket = atomicAdd(tensors.tickets, 1);
    if constexpr (X::packed) {
      const auto [b, index] = tensors.lists.find(ticket, p.kv_heads);
      place_smem[2] = b, ticket = index;
      if (b >= 0) p = alone(p, tensors.lists.of(b)), tensors.kv_tiles = ceil_div(p.seq_k, Bc);
    }
    const int n = heads_at_once(p), all = p.batch * p.kv_heads;
    const int round = ticket / (n * tensors.kv_tiles);
    const int heads = min(n, all - round * n), turn = ticket - round * n * tensors.kv_tiles;
    place_smem[0] = round * n + turn % heads;
    place_smem[1] = turn / heads;
    if constexpr (X::blocks) {
      const int head = place_smem[0] * (p.heads / p.kv_heads);
      const auto walk = walk_of(place_smem[0], place_smem[1]);
      place_smem[2] = walk.count(head);
      known.next = walk.first(head);
      for (int step = 0; step < min(2, place_smem[2]); step++) know_next(walk, step);
    }
  }
  __syncthreads();                               // the place is known
  int first_q = 0, first_k = 0, first_tile = 0;  // a packed sequence's first rows, and its first tile within a head
  if constexpr (X::packed) {
    const int b = place_smem[2];
    if (b < 0) return;  // there is no such tile
    const Sequence sequence = tensors.lists.of(b);
    first_q = sequence.begin_q, first_k = sequence.begin_k, first_tile = attention::first_tile(first_q, b, Br);
    p = alone(p, sequence);
    if (tensors.alibi) tensors.alibi += b * p.heads;
  }
  const volatile int& kv_head = place_smem[0];  // read when needed: registers are scarce
  const int kv_tile = place_smem[1];
  const int warp = threadIdx.x / 32;
  const int pair = warp % S::key_warps, own = pair * keys_of_a_warp<S>;  // the first of this warp's keys, in the block
  const bool makes_ds = !S::pairs || warp >= S::key_warps, makes_p = !S::pairs || !makes_ds;
  const int head_tiles = tensors.head_tiles, group = p.heads / p.kv_heads;
  const Tiles seeing = query_tiles<Br>(p, kv_tile * Bc, Bc);  // of each head of the group
  const int steps = X::blocks ? place_smem[2] : seeing.stop > seeing.start ? group * (seeing.stop - seeing.start) : 0;

  // Tiles of queries are counted over all heads. The next one is the next of the same head, or the first of the next.
  // With a block mask they are known by their steps, and the first thread has written down which they are.
  const auto after = [&](int tile) {
    if constexpr (X::blocks) return tile + 1;
    return tile % head_tiles + 1 < seeing.stop ? tile + 1 : tile / head_tiles * head_tiles + head_tiles + seeing.start;
  };
  const auto number_of = [&](int tile) {
    if constexpr (X::blocks) return known.of[tile % 8].head * head_tiles + known.of[tile % 8].tile;
    return tile;
  };
  const auto copy_stage = [&](int step, int its_tile) {
    if (step < steps) {
      const int tile = number_of(its_tile);
      T* to = q_smem + step % 2 * stage_size;
      const int head = tile / head_tiles, i0 = tile % head_tiles * Br;
      copy_rows<Br, D, Br, S::threads>(to, tensors.q, tensors.q.of_head(head, p.heads, first_q), i0, p.seq_q);
      copy_rows<Br, Dv, Br, S::threads>(to + Br * D, tensors.d_o, tensors.d_o.of_head(head, p.heads, first_q), i0,
                                        p.seq_q);
      if (threadIdx.x < 2 * Br / 4)
        cp_async_16(stats_smem + step % 2 * 2 * Br + threadIdx.x * 4,
                    tensors.stats + size_t(first_tile + tile) * 2 * Br + threadIdx.x * 4);
    }
    cp_async_commit();
  };
  copy_rows<Bc, D, Bc, S::threads>(k_smem, tensors.k, tensors.k.of_head(kv_head, p.kv_heads, first_k), kv_tile * Bc,
                                   p.seq_k);
  copy_rows<Bc, Dv, Bc, S::threads>(v_smem, tensors.v, tensors.v.of_head(kv_head, p.kv_heads, first_k), kv_tile * Bc,
                                    p.seq_k);
  int tile = X::blocks ? 0 : kv_head * group * head_tiles + seeing.start, before = tile;
  copy_stage(0, tile);

  // Whose turn it is to add this warp's part of a tile: kv tile by kv tile, from the first that a row of it sees.
  // Chapter 07, 8_final.cu, has a picture.
  const bool makes_dq = dq_parts_of<S> == S::warps || warp < dq_parts_of<S>;
  const bool first_lane = threadIdx.x % 32 == 0;
  const auto semaphore = [&](int tile) {
    return tensors.turns + size_t(first_tile + number_of(tile)) * dq_parts_of<S> + warp;
  };
  const auto keys_of_tile = [&](int tile) -> Tiles {
    if constexpr (!X::blocks) return key_tiles<Bc>(p, tile % head_tiles * Br, Br);
    const Turn turn = known.of[tile % 8].turn;  // as if the others' numbers were those around this one's
    return {kv_tile - turn.number, kv_tile + (turn.last ? 1 : 2)};
  };
  int seen = 0;
  const auto pass_turn = [&](bool has_added, int added, int next) {
    if (!makes_dq) return;
    __syncwarp();  // all lanes have added to tile `added`, in global memory
    if (first_lane) {
      seen = semaphore_peek(semaphore(next));
      fence_acq_rel();
      if (has_added) semaphore_set(semaphore(added), kv_tile + 1 - keys_of_tile(added).start);
    }
  };
  // dQ of a tile whose dS is in shared memory, from the step `of`.
  const auto make_dq = [&](int of, int tile) {
    if (!makes_dq) return;
    watch_step("dQ += dS K");
    float dq_reg[2][4][4];
    const int right = 2 * (warp % (D / 32));
    multiply_transpose<Bc>(dq_reg, ds_smem + of % 2 * S::ds_stage, warp / (D / 32), k_smem, right, right + 1);
    watch("dQ", backward_pairs::watched_dq<S>(number_of(tile), p.seq_q), dq_reg, p.scale);
    const Tiles keys = keys_of_tile(tile);
    if (first_lane && seen != kv_tile - keys.start) semaphore_wait(semaphore(tile), kv_tile - keys.start);
    __syncwarp();  // it is this warp's turn in global memory
    add_dq<S>(p, tensors, dq_reg, kv_tile, number_of(tile), keys, first_q, first_tile);
  };

  constexpr int key_blocks = keys_of_a_warp<S> / 16;
  float dk_reg[key_blocks][D / 8][4] = {};  // of a pair's warp dV, if it makes that
  float dv_beside_dk[key_blocks][Dv / 8][4] = {};
  auto& dv_reg = first_if<S::pairs>(dk_reg, dv_beside_dk);

  int added = tile;  // of a pair's warp that makes no dS: the tile that it added to last, if it did
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    const int next = after(tile);
    if constexpr (X::blocks)
      if (threadIdx.x == 0 && step + 2 < steps) know_next(walk_of(kv_head, kv_tile), step + 2);
    cp_async_wait<0>();
    // This stage (and K and V) and dS of the tile before are in shared memory, and everyone is done with the stage
    // before and with dS of the tile before that.
    __syncthreads();
    copy_stage(step + 1, next);

    if (makes_ds && step > 0) make_dq(step - 1, before);
    const auto multiply = [&]<Role role>() {
      const T* q_tile = q_smem + step % 2 * stage_size;
      const int number = number_of(tile), head = number / head_tiles, i0 = number % head_tiles * Br;
      const int j = kv_tile * Bc + own;
      Where at = {i0, j};
      if constexpr (X::blocks) at.bits = tensors.lists.bits_of_keys(known.of[tile % 8].cut);
      multiply_tile<S, X, role>(dv_reg, dk_reg, k_smem + own * page_row, v_smem + own * page_row, q_tile,
                                q_tile + Br * D, stats_smem + step % 2 * 2 * Br,
                                ds_smem + step % 2 * S::ds_stage + own * page_row, p,
                                typename X::Score(p, tensors.alibi).of_head(head), pair, at,
                                {int64_t(head) * p.seq_q + i0, j, p.seq_q - i0, p.seq_k - j},
                                {int64_t(kv_head) * p.seq_k + j, 0, p.seq_k - j, D});
    };
    if constexpr (!S::pairs)
      multiply.template operator()<Role::all>();
    else if (makes_p)
      multiply.template operator()<Role::p_and_dv>();
    else
      multiply.template operator()<Role::ds_and_dk>();
    if (makes_ds) {
      pass_turn(step > 0, before, tile);
    } else if (step > 0) {
      pass_turn(step > 1, added, before);
      make_dq(step - 1, before);
      added = before;
    }
    end_tile_of_pair<S>(pair, makes_ds);
    before = tile;
    tile = next;
  }
  cp_async_wait<0>();
  __syncthreads();  // dS of the last tile is in shared memory, and without any tile K and V
  if (steps > 0) {
    if (!makes_ds) pass_turn(steps > 1, added, before);
    make_dq(steps - 1, before);
    __syncwarp();  // all lanes have added to the last tile, in global memory
    if (first_lane && makes_dq) {
      fence_acq_rel();
      semaphore_set(semaphore(before), kv_tile + 1 - keys_of_tile(before).start);
    }
  }
  __syncthreads();  // everyone is done with K and V

  const int j = kv_tile * Bc + own;
  watch_step("dK and dV leave");
  if (makes_p)
    store_rows<Bc, Dv>(tensors.dv.at_row(tensors.dv.of_head(kv_head, p.kv_heads, first_k), j), v_smem + own * page_row,
                       dv_reg, 1 / p_factor, p.seq_k - j, size_t(tensors.dv.row) * 8);
  if (makes_ds)
    store_rows<Bc, D>(tensors.dk.at_row(tensors.dk.of_head(kv_head, p.kv_heads, first_k), j), k_smem + own * page_row,
                      dk_reg, p.scale, p.seq_k - j, size_t(tensors.dk.row) * 8);
}

template <class X>
void run_backward(const Problem& problem, const BackwardArgs& args, cudaStream_t stream) {
  const Problem p = with_both_sides<X>(problem);
  if (on_hopper::takes(p, args)) return on_hopper::run_backward<X>(p, args, stream);
  const auto run = [&]<class T, class S>() {
    const attention::BackwardTiles<S> tiles(p);
    const auto [dq_sum, stats, turns, tickets] =
        attention::BackwardWorkspace::of(args.workspace, tiles, dq_parts_of<S>);
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::views_of<T>(p, args);
    BackwardTensors<T, Lists<X>> tensors = {
        q, k, v, d_o, dq, dk, dv, args.alibi, stats, dq_sum, turns, tickets, tiles.kv_tiles, tiles.head_tiles, {}};
    Sequences sequences;
    if constexpr (X::packed) sequences = tensors.lists = list_keys(p, args, tickets + 1, S::Bc, stream);
    const unsigned row_blocks = tiles.q_tiles * (S::Br * dim_of_v<S> / 8 / S::threads);
    launch(prepare<T, S, dq_parts_of<S>>, {row_blocks, S::threads, 0, stream}, p, o, args.lse, d_o, stats, turns,
           tickets, dq, sequences);
    if constexpr (X::blocks)
      tensors.lists = check_lists(p, args, tickets + 1, stats, int64_t(tiles.q_tiles) * 2 * S::Br, stream);
    constexpr size_t more = X::blocks ? known_bytes : place_bytes;
    launch(gradients<T, S, X>, {tiles.key_blocks, S::threads, S::shared_bytes + more, stream}, p, tensors);
    if (p.sink)
      launch(of_sinks<S>, {unsigned(p.heads), sink_threads, 0, stream}, p, args.sink, stats, args.d_sink, sequences);
  };
  if constexpr (takes_own_v<X>)
    if (p.head_dim == own_v_head_dim)
      return attention::by_dtype(p, [&]<class T>() { run.template operator()<T, OwnVShape>(); });
  attention::by_dtype_and_shape(p, X::blocks ? known_bytes : place_bytes, run);
}

// That, and for the backward whether blocks can have too little shared memory.
inline std::string backward_not_8_to_128_nor_own_v(const Problem& p) {
  const std::string why = not_8_to_128_nor_own_v(p);
  constexpr size_t needed = OwnVShape::shared_bytes + place_bytes;
  if (!why.empty() || p.v_dim() == p.head_dim || largest_shared_memory() >= needed) return why;
  return "a thread block can have " + std::to_string(largest_shared_memory()) +
         " bytes of shared memory: the backward of a V with its own head dim takes " + std::to_string(needed);
}

constexpr int least_keys = 64;  // of a tile of any shape

// For tiles of 64 queries (those of 32 take no more, but for a V with its own head dim), or for Hopper's.
inline size_t backward_workspace(const Problem& p) {
  if (p.head_dim == own_v_head_dim)
    return attention::BackwardWorkspace::bytes(p, OwnVShape::Br, dq_parts_of<OwnVShape>);
  const size_t list =
      Sequences::bytes(p, attention::tiles_of_head(p, p.seq_k, p.total_k, least_keys)) + BlockLists::bytes(p, true);
  return list + std::max(attention::BackwardWorkspace::bytes(p, 64, backward_pairs::Shape128::warps),
                         on_hopper::backward_workspace(p));
}

}  // namespace variants
