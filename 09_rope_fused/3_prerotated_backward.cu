// Chapter 09, rung 3, prerotated, backward: a row is rotated, and its gradient turned back, where one block meets it.
//
//   prepare    a few lanes per query: log2(e) LSE and delta = rowsum(dO o O); Q, rotated, to the workspace; zeros in dQ
//              for rows that see no key
//   gradients  a thread block owns Bc rows of K and V and their gradients; Q and dO pass by in tiles of Br rows, of all
//              query heads that read this kv head, in each from the diagonal on
//
// Each of a block's rows belongs to one warp or one pair of warps, 32 rows to each. For each tile that passes by:
//
//   S^T = K Q^T      P^T = 2^(S^T - LSE)          dV += P^T dO       32 x Br, P^T from registers
//   dP^T = V dO^T    dS^T = P^T o (dP^T - delta)  dK += dS^T Q       likewise; dS^T also goes to shared memory
//   dQ of the tile before = dS K                                     32 x 32 of it a warp, added to other blocks' parts
//
// with the rotated Q and K. At D = 64 a warp does all of it, at D = 128 a pair shares it, as in chapter 07.
//
// What changed since chapter 08, 4_ordered_backward:
//   - A row of K belongs to one block, which rotates it on its way to shared memory, and turns its dK back before it
//     leaves the registers. In the forward it was Q that could be treated so.
//   - A row of Q is met by every block below the diagonal. `prepare`, which reads rows of O and dO anyway, rotates it.
//   - The last block to add to a tile's dQ turns the sum back before rounding. Both halves of a pair must then be in
//     one thread: a warp's 32 columns are 16 of the left half of the head dim and the 16 that are their partners.
//   - V and the first stage of Q and dO are asked for before K is turned, so that they are on their way meanwhile.
//
// Expected limit: chapter 08's. K is turned once a block, dQ and dK are turned back once a row.
#include <cmath>
#include <cstdint>

#include "attention/backward_workspace.h"
#include "attention/padded.h"
#include "device/atomic_add.h"
#include "device/backward_pairs.h"
#include "device/rope_angles.h"
#include "device/semaphore.h"

namespace rope_fused {
namespace {

using attention::BackwardArgs;
using attention::Problem;
using attention::RopeTables;
using namespace backward_pairs;
using namespace rope_angles;

// How many kv heads the tickets go round. Without a mask as many as in chapter 07.
__device__ int heads_at_once(const Problem& p) { return p.mask == attention::Mask::causal ? 64 : 16; }

constexpr size_t place_bytes = 2 * sizeof(int);  // of shared memory, for the block's place

template <class T>
struct RotatedTensors {
  const T* q;          // [B, H, Nq, D], rotated
  const T* k;          // [B, Hkv, Nk, D]
  const T* v;          // [B, Hkv, Nk, D]
  const T* d_o;        // [B, H, Nq, D]
  const float* stats;  // [B * H * tiles][2][Br], of LSE, then of delta
  float* dq_sum;       // [B * H * tiles][warps][8][32][4]: fragments (2 x 4 of 16 x 8) of 32 lanes
  int* turns;          // [B * H * tiles][warps]: the kv tile that may add to dq_sum
  int* tickets;        // drawn so far
  T* dq;               // [B, H, Nq, D]
  T* dk;               // [B, Hkv, Nk, D]
  T* dv;               // [B, Hkv, Nk, D]
  RopeTables rope;
  int kv_heads;         // of the whole batch
  int kv_tiles;         // tiles of a kv head
  int head_tiles;       // tiles of a query head
  int q_tiles, q_rows;  // tiles and rows of all query heads that read one kv head
};

// The last block of keys that computes a tile of a head's queries.
template <class S>
__device__ int last_seen(const Problem& p, int tile) {
  return (p.visible_keys((tile / 2 * 2 + 2) * S::Br - 1) - 1) / S::Bc;
}

// Adds the warp's part of dQ of a tile, counted over all heads.
template <class S, class T>
__device__ void add_dq(const Problem& p, const RotatedTensors<T>& tensors, const float (&dq_reg)[2][4][4], int kv_tile,
                       int tile) {
  constexpr int D = S::D;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  float4* sum =
      reinterpret_cast<float4*>(tensors.dq_sum) + (size_t(tile) * S::warps + warp) * 8 * 32 + lane;  // [8][32]
  if (kv_tile == last_seen<S>(p, tile % tensors.head_tiles)) {
    const int i0 = tile % tensors.head_tiles * S::Br + warp / (D / 32) * 32 + g;
    const size_t row = size_t(tile / tensors.head_tiles) * p.seq_q + i0;
    const int pair = warp % (D / 32) * 16 + 2 * t;  // its first; the other half of a pair is two fragments further on
    T* to = tensors.dq + row * D + pair;
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < 2; n++) {
        float4 x1 = make_float4(0, 0, 0, 0), x2 = x1;
        if (kv_tile > 0) x1 = sum[(b * 4 + n) * 32], x2 = sum[(b * 4 + n + 2) * 32];
        TwoAngles angles[2];  // of the last row for rows past the end: a load behind a branch would wait for it
        for (int h = 0; h < 2; h++) {
          const int i = min(i0 + 16 * b + 8 * h, p.seq_q - 1);
          angles[h] = two_angles_of<D>(tensors.rope, p.query_position(i), pair + 8 * n);
        }
        for (int h = 0; h < 2; h++) {
          const int r = 16 * b + 8 * h;
          const float *left = dq_reg[b][n] + 2 * h, *right = dq_reg[b][n + 2] + 2 * h;
          float2 y1 = make_float2((h ? x1.z : x1.x) + left[0], (h ? x1.w : x1.y) + left[1]);
          float2 y2 = make_float2((h ? x2.z : x2.x) + right[0], (h ? x2.w : x2.y) + right[1]);
          turn_back(y1, y2, angles[h]);
          if (i0 + r < p.seq_q) {
            *reinterpret_cast<uint32_t*>(to + r * D + 8 * n) = pack2<T>(y1.x * p.scale, y1.y * p.scale);
            *reinterpret_cast<uint32_t*>(to + r * D + 8 * n + D / 2) = pack2<T>(y2.x * p.scale, y2.y * p.scale);
          }
        }
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

// D / 8 lanes per query row, 8 elements each. The first half of them rotates Q.
template <class T, class S>
__global__ void prepare(Problem p, RopeTables rope,
                        const T* q,        // [B, H, Nq, D]
                        const T* o,        // [B, H, Nq, D]
                        const float* lse,  // [B, H, Nq]
                        const T* d_o,      // [B, H, Nq, D]
                        float* stats,      // [B * H * tiles][2][Br]
                        int* turns,        // [B * H * tiles][warps]
                        int* tickets,
                        T* dq,         // [B, H, Nq, D]
                        T* q_rotated)  // [B, H, Nq, D]
{
  constexpr int D = S::D, Br = S::Br, lanes = D / 8;
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x, row = thread / lanes, lane = thread % lanes;
  const unsigned head_tiles = ceil_div(p.seq_q, Br), tile = row / Br, head = tile / head_tiles;
  const unsigned i = tile % head_tiles * Br + row % Br;
  const size_t q_row = size_t(head) * p.seq_q + i, at = q_row * D + lane * 8;
  const RowStatistics of_row = row_statistics<D>(i < unsigned(p.seq_q), o + at, d_o + at, lse + q_row);
  if (i < unsigned(p.seq_q) && lane < lanes / 2) {
    Pack8<T> x1 = load_pack8(q + at), x2 = load_pack8(q + at + D / 2);
    turn(x1, x2, angles_of<D>(rope, p.query_position(i), lane * 8));
    store_pack8(q_rotated + at, x1);
    store_pack8(q_rotated + at + D / 2, x2);
  }
  if (i < unsigned(p.seq_q) && p.visible_keys(i) == 0) store_pack8(dq + at, Pack8<T>{});
  if (lane == 0) {
    stats[(size_t(tile) * 2) * Br + row % Br] = of_row.lse;
    stats[(size_t(tile) * 2 + 1) * Br + row % Br] = of_row.row_sum;
    if (row % Br < S::warps) turns[size_t(tile) * S::warps + row % Br] = 0;
  }
  if (thread == 0) *tickets = 0;
}

template <class T, class S>
__global__ void __launch_bounds__(S::threads, S::blocks) gradients(Problem p, RotatedTensors<T> tensors) {
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
    copy_tile<Bc, D, S::threads>(v_smem, tensors.v + kv_row * D, p.seq_k - j0);
    copy_stage(end - tensors.q_tiles + start, i0, q_row);
    // K by way of registers, rotated, while the copies are on their way. K is first used behind the barrier
    // that awaits these copies, too.
    for (int n = threadIdx.x; n < Bc * D / 16; n += S::threads) {
      const int row = n / (D / 16), chunk = n % (D / 16);
      Pack8<T> x1 = {}, x2 = {};
      if (j0 + row < p.seq_k) {
        const T* from = tensors.k + (kv_row + row) * D + chunk * 8;
        x1 = load_pack8(from), x2 = load_pack8(from + D / 2);
        turn(x1, x2, angles_of<D>(tensors.rope, j0 + row, chunk * 8));
      }
      store_pack8(k_smem + position<Bc>(row, chunk), x1);
      store_pack8(k_smem + position<Bc>(row, chunk + D / 16), x2);
    }
  }

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
    const int left = warp % (D / 32);
    multiply_transpose<Bc>(dq_reg, ds_smem + tile % 2 * S::ds_stage, warp / (D / 32), k_smem, left, left + D / 32);
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
  if (makes_ds) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int h = 0; h < 2; h++) {
        const int row = min(j + 16 * b + 8 * h + g, p.seq_k - 1);  // rows past the end are not stored
        for (int n = 0; n < D / 16; n++) {
          float *left = dk_reg[b][n] + 2 * h, *right = dk_reg[b][n + D / 16] + 2 * h;
          float2 x1 = make_float2(left[0], left[1]), x2 = make_float2(right[0], right[1]);
          turn_back(x1, x2, two_angles_of<D>(tensors.rope, row, 8 * n + 2 * t));
          left[0] = x1.x, left[1] = x1.y, right[0] = x2.x, right[1] = x2.y;
        }
      }
    store_rows<Bc, D>(tensors.dk + to, k_smem + own * page_row, dk_reg, p.scale, p.seq_k - j);
  }
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_shape(p, place_bytes, [&]<class T, class S>() {
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
    const attention::BackwardTiles<S> tiles(p);
    T* const q_rotated = static_cast<T*>(args.workspace);
    const auto [dq_sum, stats, turns, tickets] =
        attention::BackwardWorkspace::of(q_rotated + p.q_size(), tiles, S::warps);
    const RotatedTensors<T> tensors = {q_rotated,
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
                                       args.rope,
                                       p.batch * p.kv_heads,
                                       tiles.kv_tiles,
                                       tiles.head_tiles,
                                       tiles.group_tiles,
                                       tiles.group_rows};
    launch(prepare<T, S>, {tiles.row_blocks, S::threads, 0, stream}, p, args.rope, q, o, args.lse, d_o, stats, turns,
           tickets, dq, q_rotated);
    launch(gradients<T, S>, {tiles.key_blocks, S::threads, S::shared_bytes + place_bytes, stream}, p, tensors);
  });
}

// Q, rotated, and the rest for tiles of 64 queries; those of 32 take no more.
size_t workspace_bytes(const Problem& p) {
  return p.q_size() * 2 + attention::BackwardWorkspace::bytes(p, 64, Shape128::warps);
}

constexpr attention::Backward unpadded = {attention::head_dim_not_8_to_128, workspace_bytes, run};

}  // namespace

extern const attention::Backward prerotated_backward;
constinit const attention::Backward prerotated_backward = attention::padded<unpadded>;

}  // namespace rope_fused
