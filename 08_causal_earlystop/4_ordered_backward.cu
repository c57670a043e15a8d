// Chapter 08, rung 4, ordered: dQ is added up in one order, up to the diagonal: the same bits in every run.
//
//   prepare    a few lanes per query: log2(e) LSE and delta = rowsum(dO o O); zeros in dQ for rows that see no key
//   gradients  a thread block owns Bc rows of K and V and their gradients; Q and dO pass by in tiles of Br rows, of all
//              query heads that read this kv head, in each from the diagonal on
//
// Each of a block's rows belongs to one warp or one pair of warps, 32 rows to each. For each tile that passes by:
//
//   S^T = K Q^T      P^T = 2^(S^T - LSE)          dV += P^T dO       32 x Br, P^T from registers
//   dP^T = V dO^T    dS^T = P^T o (dP^T - delta)  dK += dS^T Q       likewise; dS^T also goes to shared memory
//   dQ of the tile before = dS K                                     32 x 32 of it a warp, added to other blocks' parts
//
// At D = 64 a warp does all of it, at D = 128 a pair shares it, as in chapter 07: P^T travels through shared memory.
//
// What changed since 3_balanced_backward is what changed from 7_atomic to 8_final in chapter 07: the blocks of a kv
// head add to dQ in the order of their keys, by tickets and semaphores; the first stores instead of adding, and the
// last writes dQ itself. The last to add is not the head's last block any more, but the one on the tile's diagonal.
// Tickets begin with the first keys, as the blocks of 3_balanced_backward do: those are the longest, and others wait
// for them. But the tickets go round more heads. Under the mask the block of the next keys begins two tiles of queries
// further down, and two blocks of a head that start together are two tiles apart until they end: the second has less
// work, and takes as long as the first. With 64 heads a block's predecessor has mostly started a good while before.
// Without a mask the tickets go round 16 heads, as in chapter 07: blocks of one head then share its Q and dO in L2.
// Head dims above 128 go to other kernels, in wide/backward.cu.
//
// Expected limit: the turns, as in chapter 07, most of all where there are only a few heads.
#include <cmath>
#include <cstdint>

#include "attention/backward_workspace.h"
#include "attention/padded.h"
#include "device/atomic_add.h"
#include "device/backward_pairs.h"
#include "device/semaphore.h"

namespace causal_earlystop {

extern const attention::Backward wide_backward;  // for D = 256

namespace {

using attention::BackwardArgs;
using attention::Problem;
using namespace backward_pairs;

// How many kv heads the tickets go round. Without a mask as many as in chapter 07.
__device__ int heads_at_once(const Problem& p) { return p.mask == attention::Mask::causal ? 64 : 16; }

constexpr size_t place_bytes = 2 * sizeof(int);  // of shared memory, for the block's place

// The last block of keys that computes a tile of a head's queries.
template <class S>
__device__ int last_seen(const Problem& p, int tile) {
  // exercise last: its number, counted from the first keys; blocks begin at tiles with even numbers
  return (p.visible_keys((tile / 2 * 2 + 2) * S::Br - 1) - 1) / S::Bc;
  // end last | return (p.seq_k - 1) / S::Bc;
}

// Adds the warp's part of dQ of a tile, counted over all heads.
template <class S, class T>
__device__ void add_dq(const Problem& p, const OrderedTensors<T>& tensors, const float (&dq_reg)[2][4][4], int kv_tile,
                       int tile) {
  constexpr int D = S::D;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  float4* sum =
      reinterpret_cast<float4*>(tensors.dq_sum) + (size_t(tile) * S::warps + warp) * 8 * 32 + lane;  // [8][32]
  if (kv_tile == last_seen<S>(p, tile % tensors.head_tiles)) {
    const int i0 = tile % tensors.head_tiles * S::Br + warp / (D / 32) * 32 + g;
    const size_t row = size_t(tile / tensors.head_tiles) * p.seq_q + i0;
    T* to = tensors.dq + row * D + warp % (D / 32) * 32 + 2 * t;
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < 4; n++) {
        const float* x = dq_reg[b][n];
        const float4 others = kv_tile == 0 ? make_float4(0, 0, 0, 0) : sum[(b * 4 + n) * 32];
        if (i0 + 16 * b < p.seq_q)
          *reinterpret_cast<uint32_t*>(to + 16 * b * D + 8 * n) =
              pack2<T>((others.x + x[0]) * p.scale, (others.y + x[1]) * p.scale);
        if (i0 + 16 * b + 8 < p.seq_q)
          *reinterpret_cast<uint32_t*>(to + (16 * b + 8) * D + 8 * n) =
              pack2<T>((others.z + x[2]) * p.scale, (others.w + x[3]) * p.scale);
      }
  } else {
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < 4; n++) {
        const float* x = dq_reg[b][n];
        float4* to = sum + (b * 4 + n) * 32;
        if (kv_tile == 0)
          *to = make_float4(x[0], x[1], x[2], x[3]);
        else
          atomic_add_4(&to->x, x);
      }
  }
}

// D / 8 lanes per query row, 8 elements each.
template <class T, class S>
__global__ void prepare(Problem p,
                        const T* o,        // [B, H, Nq, D]
                        const float* lse,  // [B, H, Nq]
                        const T* d_o,      // [B, H, Nq, D]
                        float* stats,      // [B * H * tiles][2][Br]
                        int* turns,        // [B * H * tiles][warps]
                        int* tickets,
                        T* dq)  // [B, H, Nq, D]
{
  constexpr int D = S::D, Br = S::Br, lanes = D / 8;
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x, row = thread / lanes, lane = thread % lanes;
  const unsigned head_tiles = ceil_div(p.seq_q, Br), tile = row / Br, head = tile / head_tiles;
  const unsigned i = tile % head_tiles * Br + row % Br;
  const size_t q_row = size_t(head) * p.seq_q + i, at = q_row * D + lane * 8;
  const RowStatistics of_row = row_statistics<D>(i < unsigned(p.seq_q), o + at, d_o + at, lse + q_row);
  if (i < unsigned(p.seq_q) && p.visible_keys(i) == 0) store_pack8(dq + at, Pack8<T>{});
  if (lane == 0) {
    stats[(size_t(tile) * 2) * Br + row % Br] = of_row.lse;
    stats[(size_t(tile) * 2 + 1) * Br + row % Br] = of_row.row_sum;
    if (row % Br < S::warps) turns[size_t(tile) * S::warps + row % Br] = 0;
  }
  if (thread == 0) *tickets = 0;
}

template <class T, class S>
__global__ void __launch_bounds__(S::threads, S::blocks) gradients(Problem p, OrderedTensors<T> tensors) {
  constexpr int D = S::D, Bc = S::Bc, Br = S::Br;
  T* k_smem = dynamic_shared<T>();       // [Bc][D]
  T* v_smem = k_smem + Bc * D;           // [Bc][D]
  T* q_smem = v_smem + Bc * D;           // [2 stages][Q and dO][Br][D]
  T* ds_smem = q_smem + 2 * 2 * Br * D;  // [2 stages][Bc][64], dS^T; of a pair, first P^T
  float* stats_smem = reinterpret_cast<float*>(ds_smem + 2 * S::ds_stage);  // [2 stages][2][Br]

  int* place_smem = reinterpret_cast<int*>(stats_smem + 2 * 2 * Br);  // [2]
  if (threadIdx.x == 0) {
    const int n = heads_at_once(p);
    const int ticket = atomicAdd(tensors.tickets, 1), round = ticket / (n * tensors.kv_tiles);
    const int heads = min(n, tensors.kv_heads - round * n), turn = ticket - round * n * tensors.kv_tiles;
    place_smem[0] = round * n + turn % heads;
    place_smem[1] = turn / heads;
  }
  __syncthreads();                              // the place is known
  const volatile int& kv_head = place_smem[0];  // read when needed: registers are scarce
  const int kv_tile = place_smem[1];
  const int warp = threadIdx.x / 32;
  const int pair = warp % S::key_warps, own = pair * 32;  // the first of this warp's keys, in the block
  const bool makes_ds = !S::pairs || warp >= S::key_warps, makes_p = !S::pairs || !makes_ds;
  const int start = first_seeing<S>(p, kv_tile * Bc);

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
  {
    const int j0 = kv_tile * Bc;
    const size_t kv_row = size_t(kv_head) * p.seq_k + j0;  // the first of the block's keys, over all kv heads
    copy_tile<Bc, D, S::threads>(k_smem, tensors.k + kv_row * D, p.seq_k - j0);
    copy_tile<Bc, D, S::threads>(v_smem, tensors.v + kv_row * D, p.seq_k - j0);
  }
  copy_stage(end - tensors.q_tiles + start, i0, q_row);

  // Whose turn it is to add this warp's part of a tile: kv tile by kv tile. Chapter 07, 8_final.cu, has a picture.
  const bool first_lane = threadIdx.x % 32 == 0;
  const auto semaphore = [&](int tile) { return tensors.turns + size_t(tile) * S::warps + warp; };
  int seen = 0;
  const auto pass_turn = [&](int added, int next) {
    __syncwarp();  // all lanes have added to tile `added`, in global memory
    if (first_lane) {
      seen = semaphore_peek(semaphore(next));
      fence_acq_rel();
      if (added >= 0) semaphore_set(semaphore(added), kv_tile + 1);
    }
  };
  // dQ of a tile whose dS is in shared memory.
  const auto make_dq = [&](int tile) {
    watch_step("dQ += dS K");
    float dq_reg[2][4][4];
    const int right = 2 * (warp % (D / 32));
    multiply_transpose<Bc>(dq_reg, ds_smem + tile % 2 * S::ds_stage, warp / (D / 32), k_smem, right, right + 1);
    watch("dQ", watched_dq<S>(tile, p.seq_q), dq_reg, p.scale);
    if (first_lane && seen != kv_tile) semaphore_wait(semaphore(tile), kv_tile);
    __syncwarp();  // it is this warp's turn in global memory
    add_dq<S>(p, tensors, dq_reg, kv_tile, tile);
  };

  float sums[S::pairs ? 1 : 2][2][D / 8][4] = {};  // dV and dK of 32 keys, or one of them
  auto &dv_reg = sums[0], &dk_reg = sums[S::pairs ? 0 : 1];

  int added = -1;  // of a pair's warp that makes no dS: the tile that it added to last
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
      const int j0 = kv_tile * Bc;
      multiply_tile<S, role>(dv_reg, dk_reg, k_smem + own * page_row, v_smem + own * page_row, q_tile, q_tile + Br * D,
                             stats_smem + tile % 2 * 2 * Br, ds_smem + tile % 2 * S::ds_stage + own * page_row, p.scale,
                             [&](int i) { return p.visible_keys(i0 + i) - j0 - own; }, pair,
                             {tile_row, j0 + own, p.seq_q - i0, p.seq_k - j0 - own},
                             {int64_t(end / tensors.q_tiles - 1) * p.seq_k + j0 + own, 0, p.seq_k - j0 - own, D});
    };
    if constexpr (!S::pairs)
      multiply.template operator()<Role::all>();
    else if (makes_p)
      multiply.template operator()<Role::p_and_dv>();
    else
      multiply.template operator()<Role::ds_and_dk>();
    if (makes_ds) {
      pass_turn(before, tile);
    } else if (before >= 0) {
      pass_turn(added, before);
      make_dq(before);
      added = before;
    }
    end_tile_of_pair<S>(pair, makes_ds);
    i0 = next_i0;
    before = tile;
    tile = next;
  }
  __syncthreads();  // dS of the last tile is in shared memory
  if (!makes_ds) pass_turn(added, end - 1);
  make_dq(end - 1);
  __syncwarp();  // all lanes have added to the last tile, in global memory
  if (first_lane) {
    fence_acq_rel();
    semaphore_set(semaphore(end - 1), kv_tile + 1);
  }
  __syncthreads();  // everyone is done with K and V

  const int j = kv_tile * Bc + own;
  const size_t to = (size_t(kv_head) * p.seq_k + j) * D;
  watch_step("dK and dV leave");
  if (makes_p) store_rows<Bc, D>(tensors.dv + to, v_smem + own * page_row, dv_reg, 1 / p_factor, p.seq_k - j);
  if (makes_ds) store_rows<Bc, D>(tensors.dk + to, k_smem + own * page_row, dk_reg, p.scale, p.seq_k - j);
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_shape(p, place_bytes, [&]<class T, class S>() {
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
    const attention::BackwardTiles<S> tiles(p);
    const auto [dq_sum, stats, turns, tickets] = attention::BackwardWorkspace::of(args.workspace, tiles, S::warps);
    const OrderedTensors<T> tensors = {q,
                                       k,
                                       v,
                                       d_o,
                                       stats,
                                       dq_sum,
                                       turns,
                                       tickets,
                                       dq,
                                       dk,
                                       dv,
                                       p.batch * p.kv_heads,
                                       tiles.kv_tiles,
                                       tiles.head_tiles,
                                       tiles.group_tiles,
                                       tiles.group_rows};
    launch(prepare<T, S>, {tiles.row_blocks, S::threads, 0, stream}, p, o, args.lse, d_o, stats, turns, tickets, dq);
    launch(gradients<T, S>, {tiles.key_blocks, S::threads, S::shared_bytes + place_bytes, stream}, p, tensors);
  });
}

// For tiles of 64 queries; those of 32 take no more.
size_t workspace_bytes(const Problem& p) { return attention::BackwardWorkspace::bytes(p, 64, Shape128::warps); }

constexpr attention::Backward unpadded = {attention::head_dim_not_8_to_256, workspace_bytes, run};

}  // namespace

extern const attention::Backward ordered_backward;
constinit const attention::Backward ordered_backward =
    attention::padded<unpadded, attention::next_64_128_256, wide_backward>;

}  // namespace causal_earlystop
