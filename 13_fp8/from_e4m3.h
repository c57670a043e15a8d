// Chapter 13, of tensors that are e4m3 already: a rung's loop (forward.h), and V transposed beside it.
//
// Nobody has to round anything, but e4m3's products want V transposed. A kernel before would read and write all of V
// while the tensor cores wait. So it transposes V of the first heads alone (heads_before), and two warps of every
// block's producer, which had nothing to do, transpose the rest while the loop runs:
//
//   producer, warp 0   Q, K and V         waits for all of a head's V before its first tile
//   producer, 2 and 3  tiles of V         take the next one that nobody has, until none is left    -> of_head, done
//
// So each tile is transposed once, and not for every tile of queries as in `inside`. They take tiles in the order of
// the heads, which is nearly the order in which the loop comes to them.
//
// No block waits for one that may not run: whoever has taken a tile is running, and these two warps wait for nobody.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/limits.h"
#include "device/proxy_fence.h"
#include "device/semaphore.h"
#include "device/wgmma.h"
#include "forward.h"

namespace fp8 {

// The bytes of four words, transposed: byte j of word i becomes byte i of word j.
__device__ inline void transpose_bytes(uint32_t (&words)[4]) {
  const uint32_t low01 = __byte_perm(words[0], words[1], 0x5140), high01 = __byte_perm(words[0], words[1], 0x7362);
  const uint32_t low23 = __byte_perm(words[2], words[3], 0x5140), high23 = __byte_perm(words[2], words[3], 0x7362);
  words[0] = __byte_perm(low01, low23, 0x5410), words[1] = __byte_perm(low01, low23, 0x7632);
  words[2] = __byte_perm(high01, high23, 0x5410), words[3] = __byte_perm(high01, high23, 0x7632);
}

// What is no scale, or less than a normal number, whose logarithm exp2_approx() takes, becomes NaN, and all that
// depends on it.
__device__ inline float checked_scale(const float* scales, int i, bool of_tiles) {
  const float scale = scales[of_tiles ? i : 0];
  return scale >= 0x1p-126f && scale < INFINITY ? scale : NAN;
}

// V, and how far it is transposed.
struct TransposingV {
  struct Progress {
    int taken, done;  // tiles, of all heads
    int of_head[];    // [B * Hkv], tiles that are done
  };

  const e4m3* from;                   // [B * Hkv, Nk, D]
  e4m3* to;                           // [B * Hkv, D, head_tiles * Bc]
  Progress* progress;                 // in the workspace
  unsigned seq_k, head_tiles, tiles;  // Nk, and tiles of a head and of all heads
  bool all_there = false;

  // The thread that loads, before it comes to a head. When all heads are there it has no need to ask again.
  __device__ void wait_for(int kv_head) {
    if (all_there) return;
    all_there = semaphore_peek(&progress->done) == int(tiles);
    if (!all_there) semaphore_wait(&progress->of_head[kv_head], int(head_tiles));  // V is in global memory
    fence_acq_rel();
    fence_proxy_async_global();  // other threads wrote it, and a bulk copy will read it
  }

  // A warp of the producer.
  template <int D>
  __device__ void transpose_tiles() const {
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (;;) {
      unsigned tile = 0;
      if (lane == 0) tile = atomicAdd(&progress->taken, 1);
      tile = __shfl_sync(0xffffffff, tile, 0);
      if (tile >= tiles) break;
      const unsigned kv_head = tile / head_tiles, j0 = tile % head_tiles * Bc;
      if (lane == 0) bulk_prefetch(from + (uint64_t(kv_head) * seq_k + j0) * D, min(unsigned(Bc), seq_k - j0) * D);
      transpose<D>(kv_head, j0, 0, 1);
      __syncwarp();  // all lanes have stored their part to global memory
      if (lane == 0) {
        fence_acq_rel();
        atomicAdd(&progress->of_head[kv_head], 1);
        atomicAdd(&progress->done, 1);
      }
    }
  }

  // A warp's part of a tile. It has 32 keys and 32 columns at a time, and a lane four of these keys, those of a
  // register of P (quantize.h), and eight columns. So four lanes read 32 bytes of a key, and eight write 32 bytes of a
  // column.
  template <int D>
  __device__ __forceinline__ void transpose(unsigned kv_head, unsigned j0, int part, int parts) const {
    unsigned lane = threadIdx.x % 32;
    pin(lane);  // what is computed of it is computed again for each tile: the producer has 24 registers from D = 128 on
    const unsigned first = j0 + lane / 16 * 16 + lane % 4 * 2, column = lane / 4 % 4 * 8, keys = head_tiles * Bc;
    const e4m3* const of_key = from + (uint64_t(kv_head) * seq_k + first) * D + column;
    e4m3* const of_column = to + (uint64_t(kv_head) * D + column) * keys + j0 + lane / 16 * 16 + lane % 4 * 4;
#pragma unroll 1
    for (int i = part * 1024; i < Bc * D; i += parts * 1024) {
      const unsigned key = i / (32 * D) * 32, c = i / 32 % D;
      uint32_t words[2][4] = {};  // of the first four columns, and of the others
#pragma unroll
      for (int next = 0; next < 4; next++) {
        const unsigned later = key + next / 2 * 8 + next % 2;
        if (first + later >= seq_k) continue;
        const uint2 eight = *reinterpret_cast<const uint2*>(of_key + later * D + c);
        words[0][next] = eight.x, words[1][next] = eight.y;
      }
#pragma unroll
      for (int w = 0; w < 2; w++) {
        transpose_bytes(words[w]);
#pragma unroll
        for (int e = 0; e < 4; e++)
          *reinterpret_cast<uint32_t*>(of_column + (c + 4 * w + e) * keys + key) = words[w][e];
      }
    }
  }
};

// The kernel before: a tile of V for each block, of the first heads; then a scale of Q, K and V for each thread.
template <int D>
constexpr int take_threads = 4 * D;
template <int D>
__global__ void __launch_bounds__(take_threads<D>)
    take(TransposingV v, attention::ScalesOfE4m3 scales, Problem p, EightBitTiles to, int first_heads) {
  const int first_tiles = first_heads * v.head_tiles;
  if (int(blockIdx.x) < first_tiles) {
    v.transpose<D>(blockIdx.x / v.head_tiles, blockIdx.x % v.head_tiles * Bc, threadIdx.x / 32, take_threads<D> / 32);
    return;
  }
  const int i = (blockIdx.x - first_tiles) * take_threads<D> + threadIdx.x;
  if (i == 0) *to.taken = 0, v.progress->taken = v.progress->done = first_tiles;
  if (i < p.batch * p.kv_heads) v.progress->of_head[i] = i < first_heads ? v.head_tiles : 0;
  if (i < p.batch * p.heads * to.q_tiles) to.q_scales[i] = checked_scale(scales.q, i, scales.of_tiles);
  if (i < int(v.tiles)) {
    to.k_scales[i] = checked_scale(scales.k, i, scales.of_tiles);
    to.v_exponents[i] = log2f(checked_scale(scales.v, i, scales.of_tiles));
  }
}

// How many kv heads' V is transposed before. Those of the first two tiles of each block, at least. And where a kv head
// has fewer than 2000 rows of queries, of all heads of its group, the loop is at the last heads before their V is: with
// 500 rows only a quarter of the heads is done in time, so three quarters are transposed before.
template <int D>
int heads_before(const Problem& p) {
  const int heads = p.batch * p.kv_heads, group = p.heads / p.kv_heads, first_tiles = 2 * multiprocessors();
  const int together = std::max(attention::heads_that_run_together(p), ceil_div(first_tiles, ceil_div(p.seq_q, Br<D>)));
  const int in_time = int(std::min<int64_t>(heads, int64_t(heads) * group * p.seq_q / 2000));
  return std::clamp(heads - in_time, std::min(ceil_div(std::min(together, first_tiles), group), heads), heads);
}

template <class R>
struct FromE4m3 : R {
  static constexpr V v = V::alongside;
  using Transposing = TransposingV;
};

template <class R>
void run_of_e4m3(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128, 256>(p, [&]<class T, int D>() {
    EightBitTiles eight = tiles_in_workspace(p, args.workspace, true);
    eight.q = static_cast<e4m3*>(const_cast<void*>(args.q)), eight.k = static_cast<e4m3*>(const_cast<void*>(args.k));
    void* const progress = static_cast<char*>(args.workspace) + tiles_workspace_bytes<true>(p);
    const int kv_tiles = p.batch * p.kv_heads * eight.k_tiles;
    const TransposingV v = {
        .from = static_cast<const e4m3*>(args.v),
        .to = eight.v,
        .progress = static_cast<TransposingV::Progress*>(progress),
        .seq_k = unsigned(p.seq_k),
        .head_tiles = unsigned(eight.k_tiles),
        .tiles = unsigned(kv_tiles),
    };
    const int first_heads = heads_before<D>(p), scales = std::max(p.batch * p.heads * eight.q_tiles, kv_tiles);
    launch(take<D>,
           {unsigned(first_heads * eight.k_tiles + ceil_div(scales, take_threads<D>)), take_threads<D>, 0, stream}, v,
           args.scales, p, eight, first_heads);
    Problem unrotated = p;  // no row is rotated, by which it would be sqrt(D) times as long
    if (R::rounding == attention::rotated_tile) unrotated.scale *= D;
    attend<FromE4m3<R>, T, D>(unrotated, args, eight, tile_scales(eight), stream, v);
  });
}

inline std::string not_of_e4m3(const Problem& p) {
  if (const std::string why = attention::not_for_hopper_to_256(p); !why.empty()) return why;
  if (p.head_dim == 64 || p.head_dim == 128 || p.head_dim == 256) return "";
  return "head-dim is " + std::to_string(p.head_dim) + ": of tensors in e4m3 supported are 64, 128 and 256";
}

inline size_t workspace_of_e4m3(const Problem& p) {
  return tiles_workspace_bytes<true>(p) + sizeof(TransposingV::Progress) + size_t(p.batch) * p.kv_heads * sizeof(int);
}

template <class R>
constexpr attention::Forward of_e4m3 = {.unsupported = not_of_e4m3,
                                        .workspace_bytes = workspace_of_e4m3,
                                        .run = run_of_e4m3<R>,
                                        .writes_lse = true,
                                        .eight_bits = attention::scale_of_tile,
                                        .cuts_sums = R::flush == 0};

}  // namespace fp8
