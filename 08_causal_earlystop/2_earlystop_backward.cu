// Chapter 08, rung 2, earlystop, backward: queries that see none of a block's keys do not pass by.
//
//   prepare    a few lanes per query: log2(e) LSE and delta = rowsum(dO o O); and zeros where dQ will be added up
//   gradients  a thread block owns Bc rows of K and V and their gradients; Q and dO pass by in tiles of Br rows, of all
//              query heads that read this kv head, in each from the diagonal on
//   convert    dQ from its fp32 sum to the storage type
//
// Each of a block's rows belongs to one warp or one pair of warps, 32 rows to each. For each tile that passes by:
//
//   S^T = K Q^T      P^T = 2^(S^T - LSE)          dV += P^T dO       32 x Br, P^T from registers
//   dP^T = V dO^T    dS^T = P^T o (dP^T - delta)  dK += dS^T Q       likewise; dS^T also goes to shared memory
//   dQ of the tile before = dS K                                     32 x 32 of it a warp, added to other blocks' parts
//
// At D = 64 a warp does all of it, at D = 128 a pair shares it, as in chapter 07: P^T travels through shared memory.
//
// What changed since chapter 07, 7_atomic (which is this chapter's `masked`; its products are
// in device/backward_pairs.h): where the tiles of a head begin. Under the mask a key is seen by the queries from the
// diagonal on, to the last; so nothing is left out at the end, and every block has a tile to compute. As before, a warp
// runs mask code only where its part of a tile crosses the diagonal or the end of the keys.
//
// Expected limit: the tail. Blocks of the first keys have all queries to look at, those of the last keys hardly any.
// The blocks of a head start with the longest, but the long blocks of the last head start late.
#include <cmath>
#include <cstdint>

#include "attention/backward_workspace.h"
#include "attention/padded.h"
#include "device/backward_pairs.h"

namespace causal_earlystop {
namespace {

using attention::BackwardArgs;
using attention::Problem;
using namespace backward_pairs;

template <class T, class S>
__global__ void __launch_bounds__(S::threads, S::blocks) gradients(Problem p, Tensors<T> tensors) {
  constexpr int D = S::D, Bc = S::Bc, Br = S::Br;
  T* k_smem = dynamic_shared<T>();       // [Bc][D]
  T* v_smem = k_smem + Bc * D;           // [Bc][D]
  T* q_smem = v_smem + Bc * D;           // [2 stages][Q and dO][Br][D]
  T* ds_smem = q_smem + 2 * 2 * Br * D;  // [2 stages][Bc][64], dS^T; of a pair, first P^T
  float* stats_smem = reinterpret_cast<float*>(ds_smem + 2 * S::ds_stage);  // [2 stages][2][Br]

  const int kv_head = blockIdx.x / tensors.kv_tiles, j0 = (blockIdx.x - kv_head * tensors.kv_tiles) * Bc;
  const unsigned kv_row = kv_head * p.seq_k + j0;  // the first of the block's keys, over all kv heads
  const int warp = threadIdx.x / 32;
  const int pair = warp % S::key_warps, own = pair * 32;  // the first of this warp's keys, in the block
  const bool makes_ds = !S::pairs || warp >= S::key_warps, makes_p = !S::pairs || !makes_ds;
  const int start = first_seeing<S>(p, j0);

  const int end = (kv_head + 1) * tensors.q_tiles;  // of the tiles of the group, counted over all heads, as `tile` is
  // Tile `tile`: from row i0 of its head, row `q_row` over all heads.
  const auto copy_stage = [&](int tile, int i0, unsigned q_row) {
    if (tile < end) {
      T* to = q_smem + tile % 2 * 2 * Br * D;
      copy_tile<Br, D, S::threads>(to, tensors.q + size_t(q_row) * D, p.seq_q - i0);
      copy_tile<Br, D, S::threads>(to + Br * D, tensors.d_o + size_t(q_row) * D, p.seq_q - i0);
      if (threadIdx.x < 2 * Br / 4)
        cp_async_16(stats_smem + tile % 2 * 2 * Br + threadIdx.x * 4,
                    tensors.stats + size_t(tile) * 2 * Br + threadIdx.x * 4);
    }
    cp_async_commit();
  };
  int i0 = start * Br;
  unsigned q_row = kv_head * tensors.q_rows + i0;
  copy_tile<Bc, D, S::threads>(k_smem, tensors.k + size_t(kv_row) * D, p.seq_k - j0);
  copy_tile<Bc, D, S::threads>(v_smem, tensors.v + size_t(kv_row) * D, p.seq_k - j0);
  copy_stage(end - tensors.q_tiles + start, i0, q_row);

  // dQ of a tile whose dS is in shared memory.
  const auto make_dq = [&](int tile) {
    watch_step("dQ += dS K");
    float dq_reg[2][4][4];
    const int right = 2 * (warp % (D / 32));
    multiply_transpose<Bc>(dq_reg, ds_smem + tile % 2 * S::ds_stage, warp / (D / 32), k_smem, right, right + 1);
    watch("dQ", watched_dq<S>(tile, p.seq_q), dq_reg, p.scale);
    add_dq<S>(tensors.dq_sum, dq_reg, tile);
  };

  float sums[S::pairs ? 1 : 2][2][D / 8][4] = {};  // dV and dK of 32 keys, or one of them
  auto &dv_reg = sums[0], &dk_reg = sums[S::pairs ? 0 : 1];

#pragma unroll 1
  for (int tile = end - tensors.q_tiles + start, before = -1; tile < end;) {
    const bool last_of_head = i0 + Br >= p.seq_q;
    const int next_i0 = last_of_head ? start * Br : i0 + Br;
    const int next = last_of_head ? tile + 1 + start : tile + 1;
    const unsigned tile_row = q_row;  // for watch()
    q_row += last_of_head ? p.seq_q - i0 + start * Br : Br;
    cp_async_wait<0>();
    // This stage (and K and V) and dS of the tile before are in shared memory, and everyone is done with the stage
    // before and with dS of the tile before that.
    __syncthreads();
    copy_stage(next, next_i0, q_row);

    if (makes_ds && before >= 0) make_dq(before);
    const auto multiply = [&]<Role role>() {
      const T* q_tile = q_smem + tile % 2 * 2 * Br * D;
      multiply_tile<S, role>(dv_reg, dk_reg, k_smem + own * page_row, v_smem + own * page_row, q_tile, q_tile + Br * D,
                             stats_smem + tile % 2 * 2 * Br, ds_smem + tile % 2 * S::ds_stage + own * page_row, p.scale,
                             [&](int i) { return p.visible_keys(i0 + i) - j0 - own; }, pair,
                             {tile_row, j0 + own, p.seq_q - i0, p.seq_k - j0 - own},
                             {int64_t(kv_head) * p.seq_k + j0 + own, 0, p.seq_k - j0 - own, D});
    };
    if constexpr (!S::pairs)
      multiply.template operator()<Role::all>();
    else if (makes_p)
      multiply.template operator()<Role::p_and_dv>();
    else
      multiply.template operator()<Role::ds_and_dk>();
    if (!makes_ds && before >= 0) make_dq(before);
    end_tile_of_pair<S>(pair, makes_ds);
    i0 = next_i0;
    before = tile;
    tile = next;
  }
  __syncthreads();  // dS of the last tile is in shared memory
  make_dq(end - 1);
  __syncthreads();  // everyone is done with K and V

  const size_t to = size_t(kv_row + own) * D;
  watch_step("dK and dV leave");
  if (makes_p) store_rows<Bc, D>(tensors.dv + to, v_smem + own * page_row, dv_reg, 1 / p_factor, p.seq_k - j0 - own);
  if (makes_ds) store_rows<Bc, D>(tensors.dk + to, k_smem + own * page_row, dk_reg, p.scale, p.seq_k - j0 - own);
}

template <class T, class S>
__global__ void convert(Problem p,
                        const float4* dq_sum,  // [B * H * tiles][warps][2][4][8 g][4 t]
                        T* dq)                 // [B, H, Nq, D]
{
  convert_dq<T, S>(p, dq_sum, dq);
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_shape(p, 0, [&]<class T, class S>() {
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
    const attention::BackwardTiles<S> tiles(p);
    const auto [dq_sum, stats, turns, tickets] = attention::BackwardWorkspace::of(args.workspace, tiles);
    float4* const sums = reinterpret_cast<float4*>(dq_sum);
    const Tensors<T> tensors = {
        q, k, v, d_o, stats, dq_sum, dk, dv, tiles.kv_tiles, tiles.group_tiles, tiles.group_rows};
    launch(prepare<T, S>, {tiles.row_blocks, S::threads, 0, stream}, p, o, args.lse, d_o, stats, sums);
    launch(gradients<T, S>, {tiles.key_blocks, S::threads, S::shared_bytes, stream}, p, tensors);
    launch(convert<T, S>, {tiles.row_blocks / 2, S::threads, 0, stream}, p, sums, dq);
  });
}

// For tiles of 64 queries; those of 32 take no more.
size_t workspace_bytes(const Problem& p) { return attention::BackwardWorkspace::bytes(p, 64); }

constexpr attention::Backward unpadded = {.unsupported = attention::head_dim_not_8_to_128,
                                          .workspace_bytes = workspace_bytes,
                                          .run = run,
                                          .deterministic = false};

}  // namespace

extern const attention::Backward earlystop_backward;
constinit const attention::Backward earlystop_backward = attention::padded<unpadded>;

}  // namespace causal_earlystop
