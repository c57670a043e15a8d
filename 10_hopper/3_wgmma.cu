// Chapter 10, rung 3, wgmma: tiles as large as the registers allow: 192 rows, and 80 or 128 keys.
//
// A thread block of three warpgroups, four warps each, owns Br = 192 query rows of one head, each warpgroup 64 of them
// alone, from Q to O. For each tile of Bc keys:
//
//   0. barrier; one thread starts the copies of the tile that takes the place of the one before
//   1. S = Q K^T               64 x Bc a warpgroup, in registers, from Q and K in shared memory
//   2. x = scale log2(e) S - m, -inf where hidden; where it must, m rises and l and O follow (device/lazy_softmax.h)
//      P = 2^x                 l = l + rowsum P
//   3. O = O + P V             P from registers, V from shared memory
//
// and at the end O / l and LSE = ln(2) (m + log2(l)).
//
// What changed since 2_descriptors: the shape. A multiprocessor has one block of three warpgroups, where it had two
// blocks of two. The one block has all of the shared memory: a tile has 80 or 128 keys, and three or four tiles are
// there at a time. So Q is read from shared memory for fewer, larger products, K and V from the L2 cache for 192 rows,
// not for 128, and there is a barrier less often. (The two functions that start products are in device/warpgroup_tile.h
// from here on.)
//
// Expected limit: as in 2_descriptors, with three warpgroups in the place of four to fill the gaps. Predicted: 1.07
// times descriptors at D = 128, N = 8192, and 1.04 at D = 64; but 0.86 at N = 512, which is four tiles of 128 rows or
// two and two thirds of 192.
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
#include "device/warpgroup_tile.h"
#include "device/watch.h"

namespace hopper {
namespace {

using attention::ForwardArgs;
using attention::key_tiles;
using attention::Problem;
using attention::Tile;
using namespace warpgroup_tile;

constexpr int warpgroups = 3, threads = warpgroup_threads * warpgroups;
constexpr int Br = wgmma_rows * warpgroups;  // query rows of a thread block, wgmma_rows to a warpgroup

template <int D>
struct Shape;
template <>
struct Shape<128> {
  static constexpr int Bc = 80, stages = 3;  // a thread has 64 registers of O, 40 of S, 20 of P; 169 KB
};
template <>
struct Shape<64> {
  static constexpr int Bc = 128, stages = 4;  // 32 registers of O, 64 of S, 32 of P; 153 KB
};

template <class T, int D>
struct Shared {
  static constexpr int Bc = Shape<D>::Bc, stages = Shape<D>::stages;
  T q[Br * D];  // each tile in D / 64 pages of 128 bytes a row, swizzled; later O
  T k[stages][Bc * D], v[stages][Bc * D];
  Mbarrier q_full, full[stages];
};

// Starts the copies of tile j of the keys. One thread.
template <class T, int D>
__device__ __forceinline__ void load(Shared<T, D>& smem, const TensorMap& k_map, const TensorMap& v_map, int kv_head,
                                     int j) {
  constexpr int Bc = Shape<D>::Bc, kv_bytes = Bc * D * sizeof(T);
  const int stage = j % Shape<D>::stages;
  mbarrier_arrive_expect_tx(&smem.full[stage], 2 * kv_bytes);
  tensor_load(smem.k[stage], k_map, &smem.full[stage], 0, j * Bc, 0, kv_head);
  tensor_load(smem.v[stage], v_map, &smem.full[stage], 0, j * Bc, 0, kv_head);
}

template <class T, int D>
__global__ void __launch_bounds__(threads, 1)
    forward(const __grid_constant__ TensorMap q_map,  // of Q [B * H, D / 64, Nq, 64], in boxes of Br rows
            const __grid_constant__ TensorMap k_map,  // of K [B * Hkv, D / 64, Nk, 64], in boxes of Bc rows
            const __grid_constant__ TensorMap v_map,  // of V, likewise
            Problem p, int round_heads,
            T* o,        // [B, H, Nq, D]
            float* lse)  // [B, H, Nq]
{
  constexpr int Bc = Shape<D>::Bc, stages = Shape<D>::stages;
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
  T* q_rows = smem.q + wgmma_rows * warpgroup * page_row;

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
    start_product<Br, D, Bc>(s_reg, q_rows, smem.k[stage]);
    wgmma_wait<0>(s_reg);
    if (make_x(j)) lazy_softmax::raise(s_reg, o_reg, rows, state);
    lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
    watch_step("3. O += P V");
    wgmma_fence();
    start_sum<D, Bc>(o_reg, p_reg, smem.v[stage]);
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
  swizzled_tile::store_rows<Br, D>(o + (q_row + first_row) * D, smem.q + warp_row * page_row, o_reg, 1,
                                   p.seq_q - first_row);
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
    const unsigned blocks = heads * ceil_div(p.seq_q, Br);
    launch(forward<T, D>, {blocks, threads, sizeof(Shared<T, D>), stream}, tile_map<D>(q, heads, p.seq_q, Br),
           tile_map<D>(k, kv_heads, p.seq_k, Shape<D>::Bc), tile_map<D>(v, kv_heads, p.seq_k, Shape<D>::Bc), p,
           attention::heads_in_a_round(p), o, args.lse);
  });
}

constexpr attention::Forward unpadded = {attention::not_for_hopper, attention::no_workspace, run, true};

}  // namespace

extern const attention::Rung wgmma_rung;
constinit const attention::Rung wgmma_rung = {
    .name = "wgmma",
    .idea = "three warpgroups share tiles of 80 or 128 keys: as many as registers and shared memory have room for",
    .forward = attention::padded<unpadded>};

}  // namespace hopper
