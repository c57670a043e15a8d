// Chapter 10, rung 2, descriptors: products of a warpgroup, from shared memory.
//
// A thread block of two warpgroups, four warps each, owns Br = 128 query rows of one head, each warpgroup 64 of them
// alone, from Q to O. For each tile of Bc = 64 keys:
//
//   0. barrier; one thread starts the copies of the tile that takes the place of the one before
//   1. S = Q K^T               64 x 64 a warpgroup, in registers, from Q and K in shared memory
//   2. x = scale log2(e) S - m, -inf where hidden; where it must, m rises and l and O follow (device/lazy_softmax.h)
//      P = 2^x                 l = l + rowsum P
//   3. O = O + P V             P from registers, V from shared memory
//
// and at the end O / l and LSE = ln(2) (m + log2(l)).
//
// What changed since 1_tma: The products are wgmma's. Nobody loads fragments of Q, K and V any more: a descriptor says
// where a matrix lies. An instruction does 32 times as much or more, and runs while its warps wait. A product of wgmma
// has 64 rows, 16 to a warp, and here 64 columns: so the same rows belong to eight warps, not four, and at D = 64 a
// tile has 64 keys, not 32, and a multiprocessor two blocks, not three.
//
// Expected limit: warps have nothing to do while products run, and tensor cores have nothing while P is made; the two
// blocks of a multiprocessor fill each other's gaps by chance. And shared memory: S of 64 x 64 reads as many bytes of Q
// as of K, 128 a clock, all that it delivers. Predicted, at N = 8192: 1.20 times tma at D = 128, 1.02 at D = 64.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/lazy_softmax.h"
#include "device/math.h"
#include "device/mbarrier.h"
#include "device/numeric.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/watch.h"
#include "device/wgmma.h"

namespace hopper {
namespace {

using attention::ForwardArgs;
using attention::key_tiles;
using attention::Problem;
using attention::Tile;

constexpr int warpgroups = 2, threads = warpgroup_threads * warpgroups;
constexpr int Br = wgmma_rows * warpgroups;  // query rows of a thread block, wgmma_rows to a warpgroup

constexpr int blocks = 2;           // per multiprocessor: 128 registers a thread; at D = 128 O takes 64, S 32, P 16
constexpr int Bc = 64, stages = 2;  // keys of a tile, tiles in shared memory: 97 KB a block at D = 128

template <class T, int D>
struct Shared {
  T q[Br * D];  // each tile in D / 64 pages of 128 bytes a row, swizzled; later O
  T k[stages][Bc * D], v[stages][Bc * D];
  Mbarrier q_full, full[stages];
};

// Starts the copies of tile j of the keys. One thread.
template <class T, int D>
__device__ __forceinline__ void load(Shared<T, D>& smem, const TensorMap& k_map, const TensorMap& v_map, int kv_head,
                                     int j) {
  constexpr int kv_bytes = Bc * D * sizeof(T);
  const int stage = j % stages;
  mbarrier_arrive_expect_tx(&smem.full[stage], 2 * kv_bytes);
  tensor_load(smem.k[stage], k_map, &smem.full[stage], 0, j * Bc, 0, kv_head);
  tensor_load(smem.v[stage], v_map, &smem.full[stage], 0, j * Bc, 0, kv_head);
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
  // exercise stride: P V, 16 keys at a time: A is p[0][step]; B is V [Bc][D], whose rows are the inner index
  const uint64_t v_rows = wgmma_descriptor(v, Bc * 128);
#pragma unroll
  for (int step = 0; step < Bc / 16; step++)
    wgmma<T, Major::mn>(o[0], p[0][step], wgmma_advance(v_rows, step * 16 * 128), true);
  // end stride |
  wgmma_commit();
}

template <class T, int D>
__global__ void __launch_bounds__(threads, blocks)
    forward(const __grid_constant__ TensorMap q_map,  // of Q [B * H, D / 64, Nq, 64], in boxes of Br rows
            const __grid_constant__ TensorMap k_map,  // of K [B * Hkv, D / 64, Nk, 64], in boxes of Bc rows
            const __grid_constant__ TensorMap v_map,  // of V, likewise
            Problem p, int round_heads,
            T* o,        // [B, H, Nq, D]
            float* lse)  // [B, H, Nq]
{
  Shared<T, D>& smem = *dynamic_shared<Shared<T, D>, tile_alignment>();
  const Tile tile = attention::tile_of_block<Br>(p, round_heads);
  const int tiles = key_tiles<Bc>(p, tile.i0 + Br - 1), kv_head = p.kv_head(tile.head);
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.q_full, 1);
    for (int i = 0; i < stages; i++) mbarrier_init(&smem.full[i], 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&smem.q_full, Br * D * sizeof(T));
    tensor_load(smem.q, q_map, &smem.q_full, 0, tile.i0, 0, tile.head);
    for (int j = 0; j < min(stages - 1, tiles); j++) load(smem, k_map, v_map, kv_head, j);
  }
  __syncthreads();  // the mbarriers are there

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 rows
  const int first_row = tile.i0 + warp_row, warp_first = p.visible_keys(first_row);
  const float scale_log2 = p.scale * log2_e;
  T* q_rows = smem.q + wgmma_rows * warpgroup * swizzled_tile::page_row;

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

  mbarrier_wait(&smem.q_full, 0);
#pragma unroll 1
  for (int j = 0; j < tiles; j++) {
    const int stage = j % stages;
    __syncthreads();  // everyone is done with tile j - 1, whose place tile j + stages - 1 takes
    if (threadIdx.x == 0 && j + stages - 1 < tiles) load(smem, k_map, v_map, kv_head, j + stages - 1);
    mbarrier_wait(&smem.full[stage], j / stages % 2);
    watch_step("1. S = Q K^T");
    wgmma_fence();
    start_s<T, D>(s_reg, q_rows, smem.k[stage]);
    wgmma_wait<0>(s_reg);
    if (make_x(j)) lazy_softmax::raise(s_reg, o_reg, rows, state);
    lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
    watch_step("3. O += P V");
    wgmma_fence();
    start_o<T, D>(o_reg, p_reg, smem.v[stage]);
    wgmma_wait<0>(o_reg);
    watch_rows(state, rows, o_reg);
  }

  watch_step("O / l and LSE");
  // O through shared memory, in the rows of Q that no other warp reads, so that it leaves in whole rows.
  const int g = lane / 4;
  const size_t q_row = size_t(tile.head) * p.seq_q;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = first_row + 8 * h + g;
    const float l = rows.l(0, h), inverse = l > 0 ? 1 / l : 0;  // l = 0: the row sees no key
    if (lane % 4 == 0 && row < p.seq_q) lse[q_row + row] = (rows.m[0][h] + log2_approx(l)) * ln_2;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      for (int c = 0; c < 2; c++) o_reg[0][n][2 * h + c] *= inverse;
  }
  swizzled_tile::store_rows<Br, D>(o + (q_row + first_row) * D, smem.q + warp_row * swizzled_tile::page_row, o_reg, 1,
                                   p.seq_q - first_row);
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
    const unsigned row_blocks = heads * ceil_div(p.seq_q, Br);
    launch(forward<T, D>, {row_blocks, threads, sizeof(Shared<T, D>), stream}, tile_map<D>(q, heads, p.seq_q, Br),
           tile_map<D>(k, kv_heads, p.seq_k, Bc), tile_map<D>(v, kv_heads, p.seq_k, Bc), p,
           attention::heads_in_a_round(p), o, args.lse);
  });
}

constexpr attention::Forward unpadded = {attention::not_for_hopper, attention::no_workspace, run, true};

}  // namespace

extern const attention::Rung descriptors;
constinit const attention::Rung descriptors = {
    .name = "descriptors",
    .idea = "warpgroup products that take their matrices from shared memory: nobody loads fragments any more",
    .forward = attention::padded<unpadded>};

}  // namespace hopper
