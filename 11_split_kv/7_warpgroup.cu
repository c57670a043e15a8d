// Chapter 11, rung 7, warpgroup: a warpgroup owns a tile of 64 rows, and TMA does the copying.
//
// A thread block owns Br = 64 rows of the queries of one kv head, and one part of the keys, in tiles of Bc = 64. One
// warpgroup is the consumer, and one more warp is the producer. What is done by whom, and who waits for whom:
//
//   producer           Q                                                             -> q_full
//                      K and V, tile by tile  waits for k_empty, v_empty             -> k_full, v_full
//   consumer           S = Q K^T              waits for q_full, k_full               -> k_empty
//                      x = scale log2(e) S - m
//                      P = 2^x
//                      O += P V               waits for v_full                       -> v_empty
//                      O / l, m + log2(l)     to the workspace
//
// The kernel in merge.cu makes one O and LSE of the parts.
//
// What changed since 6_tall: the instructions of chapter 10. Except for the bounds of the keys, the rows of a group,
// the number of consumers, and where O goes, this is its rung `warpspec`.
//   - A product of wgmma has 64 rows, reads K and V from shared memory by itself, and takes the tensor cores less time.
//     So one warpgroup has all rows and all keys of a part, and there is nothing to merge in the block.
//   - One thread starts all copies: the bytes on their way do not depend on when the warps come to a barrier.
//   - There are no tiles of 16 rows: with fewer than 64 rows, a part of the tile stands empty.
//
// Expected limit: memory, up to 64 rows of queries for each kv head.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/key_parts.h"
#include "attention/padded.h"
#include "device/bulk_copy.h"
#include "device/elect.h"
#include "device/lazy_softmax.h"
#include "device/math.h"
#include "device/mbarrier.h"
#include "device/numeric.h"
#include "device/ring.h"
#include "device/tensor_map.h"
#include "device/watch.h"
#include "device/wgmma.h"

namespace split_kv {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using key_parts::group_rows;
using key_parts::merge;
using key_parts::number_of_parts;
using key_parts::Parts;

constexpr int threads = warpgroup_threads + 32;
constexpr int Br = 64;            // rows of a thread block: the height of a wgmma
constexpr int Bc = 64;            // keys of a tile
constexpr int thread_blocks = 2;  // per multiprocessor: 112 KB each, so that one computes while another starts or ends

template <int D>
constexpr int stages = 384 / D;  // tiles of K, and of V, in shared memory: 96 KB together

template <class T, int D>
struct Shared {
  T q[Br * D];  // each tile in D / 64 pages of 128 bytes a row, swizzled
  T k[stages<D>][Bc * D], v[stages<D>][Bc * D];
  Mbarrier q_full, k_full[stages<D>], k_empty[stages<D>], v_full[stages<D>], v_empty[stages<D>];
};

// What a thread block works on: rows from r0 on of the queries of a kv head, and tiles of keys from `begin` to `end`.
struct Part {
  int kv_head, r0, part, begin, end;
};

__device__ Part part_of_block(const Problem& p, int parts) {
  const int row_tiles = (group_rows(p) + Br - 1) / Br;
  const int part = blockIdx.x % parts, tile = blockIdx.x / parts, r0 = tile % row_tiles * Br;
  const int seen = p.visible_keys(min(r0 % p.seq_q + Br, p.seq_q) - 1);  // by any row of the tile
  const int64_t all = (seen + Bc - 1) / Bc;
  return {tile / row_tiles, r0, part, int(all * part / parts), int(all * (part + 1) / parts)};
}

// Starts the copies of a part. One thread.
template <class T, int D>
__device__ __forceinline__ void load(Shared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, Part part) {
  constexpr int kv_bytes = Bc * D * sizeof(T);
  mbarrier_arrive_expect_tx(&smem.q_full, Br * D * sizeof(T));
  tensor_load(smem.q, q_map, &smem.q_full, 0, part.r0, 0, part.kv_head);
  Ring<stages<D>> ring;
#pragma unroll 1
  for (int j = part.begin; j < part.end; j++, ring.advance()) {
    mbarrier_wait(&smem.k_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.k_full[ring.place], kv_bytes);
    tensor_load(smem.k[ring.place], k_map, &smem.k_full[ring.place], 0, j * Bc, 0, part.kv_head);
    mbarrier_wait(&smem.v_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.v_full[ring.place], kv_bytes);
    tensor_load(smem.v[ring.place], v_map, &smem.v_full[ring.place], 0, j * Bc, 0, part.kv_head);
  }
}

// Starts S = Q K^T of a warpgroup.
template <class T, int D>
__device__ __forceinline__ void start_s(float (&s)[1][Bc / 8][4], const T* q, const T* k) {
  const uint64_t q_rows = wgmma_descriptor(q), k_rows = wgmma_descriptor(k);
#pragma unroll
  for (int step = 0; step < D / 16; step++)
    wgmma<T>(s[0], wgmma_advance(q_rows, step / 4 * Br * 128 + step % 4 * 32),
             wgmma_advance(k_rows, step / 4 * Bc * 128 + step % 4 * 32), step > 0);
  wgmma_commit();
}

// Starts O += P V.
template <class T, int D>
__device__ __forceinline__ void start_o(float (&o)[1][D / 8][4], const uint32_t (&p)[1][Bc / 16][4], const T* v) {
  const uint64_t v_rows = wgmma_descriptor(v, Bc * 128);
#pragma unroll
  for (int step = 0; step < Bc / 16; step++)
    wgmma<T, Major::mn>(o[0], p[0][step], wgmma_advance(v_rows, step * 16 * 128), true);
  wgmma_commit();
}

template <class T, int D>
__device__ __forceinline__ void attend(Shared<T, D>& smem, const Problem& p, Part part, int parts, float* o_parts,
                                       float* lse_parts) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, group = group_rows(p);
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 rows
  const int first_row = part.r0 + warp_row, i0 = first_row % p.seq_q;
  const int least = p.visible_keys(i0 + 16 > p.seq_q ? 0 : i0);  // keys that all rows of the warp see
  const float scale_log2 = p.scale * log2_e;
  const Watched state = {int64_t(part.kv_head) * group + first_row, 0, group - first_row, D};
  // This warp no longer needs the buffer that the mbarrier guards.
  const auto release = [&](Mbarrier& empty) {
    if (lane == 0) mbarrier_arrive(&empty);
  };

  float s_reg[1][Bc / 8][4], o_reg[1][D / 8][4] = {};
  uint32_t p_reg[1][Bc / 16][4];
  lazy_softmax::Rows<1> rows;
  Ring<stages<D>> ring;
  mbarrier_wait(&smem.q_full, 0);
#pragma unroll 1
  for (int j = part.begin; j < part.end; j++, ring.advance()) {
    const Watched scores = {state.row, j * Bc, state.rows, p.seq_k - j * Bc};
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    watch_step("1. S = Q K^T");
    wgmma_fence();
    start_s<T, D>(s_reg, smem.q, smem.k[ring.place]);
    wgmma_wait<0>(s_reg);
    release(smem.k_empty[ring.place]);
    watch_step("2. x = S - m; m rises only if it must; P = 2^x");
    watch("S", scores, s_reg, p.scale);
    const bool above = lazy_softmax::subtract_max(s_reg, rows, scale_log2);
    if ((j + 1) * Bc > least)  // across the diagonal, or the end of the keys
      lazy_softmax::hide(s_reg, [&](int i) { return p.visible_keys((first_row + i) % p.seq_q) - j * Bc; });
    if (above) lazy_softmax::raise(s_reg, o_reg, rows, state);
    lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores);
    mbarrier_wait(&smem.v_full[ring.place], ring.parity);
    watch_step("3. O += P V");
    wgmma_fence();
    start_o<T, D>(o_reg, p_reg, smem.v[ring.place]);
    wgmma_wait<0>(o_reg);
    release(smem.v_empty[ring.place]);
  }

#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = first_row + 8 * h + g;
    const float l = rows.l(0, h), inverse = l == 0 ? 0 : 1 / l;  // l = 0: the row sees no key of this part
    if (row >= group) continue;
    const size_t to = (size_t(part.kv_head) * group + row) * parts + part.part;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      *reinterpret_cast<float2*>(o_parts + to * D + 8 * n + 2 * t) =
          make_float2(o_reg[0][n][2 * h] * inverse, o_reg[0][n][2 * h + 1] * inverse);
    if (t == 0) lse_parts[to] = l == 0 ? -INFINITY : rows.m[0][h] + log2_approx(l);
  }
}

template <class T, int D>
__global__ void __launch_bounds__(threads, thread_blocks)
    forward(const __grid_constant__ TensorMap q_map,  // of Q [B * Hkv, D / 64, G * Nq, 64], in boxes of Br rows
            const __grid_constant__ TensorMap k_map,  // of K [B * Hkv, D / 64, Nk, 64], in boxes of Bc rows
            const __grid_constant__ TensorMap v_map,  // of V, likewise
            Problem p, int parts,
            float* o_parts,    // [B, H, Nq, parts, D]
            float* lse_parts)  // [B, H, Nq, parts], base 2
{
  Shared<T, D>& smem = *dynamic_shared<Shared<T, D>, tile_alignment>();
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.q_full, 1);
    for (int i = 0; i < stages<D>; i++) {
      mbarrier_init(&smem.k_full[i], 1);
      mbarrier_init(&smem.v_full[i], 1);
      mbarrier_init(&smem.k_empty[i], 4);  // the consumer's warps
      mbarrier_init(&smem.v_empty[i], 4);
    }
    fence_mbarrier_init();
  }
  __syncthreads();  // the mbarriers are there

  const Part part = part_of_block(p, parts);
  if (__shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0) == 0)
    attend(smem, p, part, parts, o_parts, lse_parts);
  else if (elect_one())
    load(smem, q_map, k_map, v_map, part);
}

unsigned tiles(const Problem& p) { return unsigned(p.batch) * p.kv_heads * ceil_div(group_rows(p), Br); }

// As many parts as give every multiprocessor enough thread blocks, and no more than tiles of keys. Enough is one at
// D = 128, and two at D = 64, where a byte of K and V has twice as many exponentials.
int parts(const Problem& p) { return number_of_parts(tiles(p), p.head_dim > 64 ? 1 : 2, ceil_div(p.seq_k, Bc)); }

size_t workspace_bytes(const Problem& p) { return Parts::bytes(p, parts(p)); }

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const int n = parts(p), kv_heads = p.batch * p.kv_heads;
    const Parts made(p, n, args.workspace);
    launch(forward<T, D>, {tiles(p) * n, threads, sizeof(Shared<T, D>), stream},
           tile_map<D>(q, kv_heads, group_rows(p), Br), tile_map<D>(k, kv_heads, p.seq_k, Bc),
           tile_map<D>(v, kv_heads, p.seq_k, Bc), p, n, made.o, made.lse);
    merge(p, n, made, args, stream);
  });
}

constexpr attention::Forward unpadded = {attention::not_for_hopper, workspace_bytes, run, true};

}  // namespace

int warpgroup_parts(const Problem& p) { return parts(p); }

extern const attention::Rung warpgroup;
constinit const attention::Rung warpgroup = {
    .name = "warpgroup",
    .idea = "a tile of 64 rows is a warpgroup's, with the bulk copies and products of chapter 10",
    .forward = attention::padded<unpadded>};

}  // namespace split_kv
