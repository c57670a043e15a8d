// What a warp, or a pair of warps, does with 32 keys and a tile of queries in a backward of one loop. Chapter 07,
// 7_atomic.cu, is about it.
//
//   S^T = K Q^T      P^T = 2^(S^T - LSE)          dV += P^T dO       P^T from registers
//   dP^T = V dO^T    dS^T = P^T o (dP^T - delta)  dK += dS^T Q       likewise; dS^T also goes to shared memory, for dQ
//
// At D = 64 a warp does all of it. At D = 128 dK and dV of 32 rows would take all registers that a thread can have, so
// a pair shares the work: one warp makes S^T, P^T and dV, the other dP^T, dS^T and dK. P^T travels through shared
// memory, in fp32.
#pragma once

#include <cstdint>

#include "device/backward_tile.h"
#include "device/cuda.h"
#include "device/named_barrier.h"
#include "device/swizzled_tile.h"
#include "device/watch.h"

namespace backward_pairs {

using namespace backward_tile;
using namespace swizzled_tile;

template <int D_, int Bc_, int Br_, int blocks_>
struct Shape {
  static constexpr int D = D_, Bc = Bc_, Br = Br_;
  static constexpr int blocks = blocks_;            // per multiprocessor
  static constexpr int key_warps = Bc / 32;         // warps or pairs, each with 32 keys
  static constexpr int warps = Br / 32 * (D / 32);  // each makes 32 x 32 of a tile's dQ
  static constexpr int threads = 32 * warps;
  static constexpr bool pairs = warps == 2 * key_warps;
  static constexpr int chunk =
      pairs ? Br : 32;  // queries at a time; dK and dV, or one of them, leave half the registers
  static constexpr int ds_stage = Bc * (pairs ? 2 * Br : 64);  // of dS^T in rows of 64, or of P^T in rows of Br floats
  static_assert(pairs || warps == key_warps);

  // K, V; two stages each of Q and dO, of dS^T and P^T, and of the statistics.
  static constexpr size_t shared_bytes =
      (2 * Bc * D + 4 * Br * D + 2 * ds_stage) * sizeof(uint16_t) + 2 * 2 * Br * sizeof(float);
};
using Shape64 = Shape<64, 128, 64, 2>;        // 97 KB
using Shape128 = Shape<128, 128, 64, 1>;      // 193 KB: compute capability 9.0 and 10.x
using SmallShape128 = Shape<128, 64, 32, 1>;  // 81 KB, for devices that have no more, and for few keys

// What a warp does for its 32 keys.
enum class Role { all, p_and_dv, ds_and_dk };

// The products of one tile of queries (but for dQ) with the warp's 32 keys: those of its role.
template <class S, Role role, class T, class VisibleKeys>
__device__ void multiply_tile(float (&dv_reg)[2][S::D / 8][4], float (&dk_reg)[2][S::D / 8][4],
                              const T* k,          // [32][D] in shared memory, as all that follows
                              const T* v,          // [32][D]
                              const T* q,          // [Br][D]
                              const T* d_o,        // [Br][D]
                              const float* stats,  // [2][Br]
                              T* ds,               // [32][64]; of a pair, also Br / 32 pages of its P^T
                              float scale,
                              VisibleKeys visible_keys,  // (query): how many of these keys it sees
                              int pair,                  // of warps, counted over the block
                              Watched tile,              // queries, and the warp's 32 keys
                              Watched rows)              // of dV and dK
{
  constexpr int Bc = S::Bc, Br = S::Br, D = S::D, chunk = S::chunk;
  // Where one warp of a pair leaves fragment [b][n] of P^T for the other: 512 bytes in a row, 32 queries to a page.
  const auto p_smem = [&](int b, int n) -> float4& {
    return reinterpret_cast<float4*>(ds + n / 4 * Bc * page_row)[(n % 4 * 2 + b) * 32 + threadIdx.x % 32];
  };
#pragma unroll
  for (int c = 0; c < Br; c += chunk) {
    const Watched watched = {tile.row + c, tile.column, tile.rows - c, tile.columns};
    float p_reg[2][chunk / 8][4];        // S^T, then P^T
    float ds_reg[2][chunk / 8][4];       // dP^T, then dS^T
    uint32_t p_half[2][chunk / 16][4];   // P^T as A fragments of T
    uint32_t ds_half[2][chunk / 16][4];  // and dS^T
    if (role != Role::ds_and_dk) {
      watch_step("S = Q K^T, P = exp(S - LSE)");
      multiply_by_transpose<Bc, Br, D, chunk>(p_reg, k, q + c * page_row);
      make_p<chunk>(p_reg, scale, stats + c, [&](int i) { return visible_keys(c + i); });
      watch_transpose("P", watched, p_reg, 1 / p_factor);
      if (S::pairs) {
#pragma unroll
        for (int n = 0; n < chunk / 8; n++)
          for (int b = 0; b < 2; b++) p_smem(b, n) = fragments_of(p_reg)(b, n);
        named_barrier_arrive(1 + pair, 64);  // P^T is there; whoever takes it may come later
      }
      round_fragments<T, chunk>(p_half, p_reg);
    }
    if (role != Role::p_and_dv) {
      watch_step("dP = dO V^T, dS = P (dP - delta)");
      multiply_by_transpose<Bc, Br, D, chunk>(ds_reg, v, d_o + c * page_row);
      watch_transpose("dP", watched, ds_reg);
      if (S::pairs) {
        named_barrier_sync(1 + pair, 64);  // P^T is in shared memory
        make_ds<chunk>(ds_reg, p_smem, stats + Br);
        __syncwarp();  // all lanes have P^T, and dS^T may take its place
      } else {
        make_ds<chunk>(ds_reg, fragments_of(p_reg), stats + Br + c);
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
  if (role != Role::p_and_dv) watch("dK", rows, dk_reg, scale);
}

// Where the warp's part of dQ of a tile stands: 32 rows and columns. Tiles are counted over all heads.
template <class S>
__device__ Watched watched_dq(int tile, int seq_q) {
  const int warp = threadIdx.x / 32, head_tiles = (seq_q + S::Br - 1) / S::Br;
  const int i0 = tile % head_tiles * S::Br + warp / (S::D / 32) * 32;
  return {int64_t(tile / head_tiles) * seq_q + i0, warp % (S::D / 32) * 32, seq_q - i0, 32};
}

// The first tile of a head's queries that a block with keys j0 and up computes: one that sees them, or the one before.
// An even one, so that `tile % 2` goes on telling the stages of a pipeline apart when the next head's tiles follow.
template <class S>
__device__ int first_seeing(const attention::Problem& p, int j0) {
  return p.first_query(j0) / (2 * S::Br) * 2;
}

// The end of a tile for a pair: the warp that took P^T has it. The barrier of the block that comes next would do; but
// compute-sanitizer's racecheck takes threads to be in step only if they have waited at the same number of barriers.
template <class S>
__device__ void end_tile_of_pair(int pair, bool makes_ds) {
  if (!S::pairs) return;
  if (makes_ds)
    named_barrier_arrive(1 + S::key_warps + pair, 64);  // for racecheck alone
  else
    named_barrier_sync(1 + S::key_warps + pair, 64);  // for racecheck alone
}

// Tensors of a kernel whose blocks add their parts of dQ in the order of their keys.
template <class T>
struct OrderedTensors {
  const T* q;           // [B, H, Nq, D]
  const T* k;           // [B, Hkv, Nk, D]
  const T* v;           // [B, Hkv, Nk, D]
  const T* d_o;         // [B, H, Nq, D]
  const float* stats;   // [B * H * tiles][2][Br], of LSE, then of delta
  float* dq_sum;        // [B * H * tiles][warps][8][32][4]: fragments (2 x 4 of 16 x 8) of 32 lanes
  int* turns;           // [B * H * tiles][warps]: the kv tile that may add to dq_sum
  int* tickets;         // drawn so far
  T* dq;                // [B, H, Nq, D]
  T* dk;                // [B, Hkv, Nk, D]
  T* dv;                // [B, Hkv, Nk, D]
  int kv_heads;         // of the whole batch
  int kv_tiles;         // tiles of a kv head
  int head_tiles;       // tiles of a query head
  int q_tiles, q_rows;  // tiles and rows of all query heads that read one kv head
};

}  // namespace backward_pairs
