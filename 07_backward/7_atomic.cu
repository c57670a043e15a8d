// Chapter 07, rung 7, atomic: at D = 128 two warps share 32 keys.
//
//   prepare    a few lanes per query: log2(e) LSE and delta = rowsum(dO o O); and zeros where dQ will be added up
//   gradients  a thread block owns Bc rows of K and V and their gradients; Q and dO pass by in tiles of Br rows, of all
//              query heads that read this kv head
//   convert    dQ from its fp32 sum to the storage type
//
// Each of a block's rows belongs to one warp or one pair of warps, 32 rows to each. For each tile that passes by:
//
//   S^T = K Q^T      P^T = 2^(S^T - LSE)          dV += P^T dO       32 x Br, P^T from registers
//   dP^T = V dO^T    dS^T = P^T o (dP^T - delta)  dK += dS^T Q       likewise; dS^T also goes to shared memory
//   dQ of the tile before = dS K                                     32 x 32 of it a warp, added to other blocks' parts
//
// What changed since 6_late_dq: nothing at D = 64, where a warp does all of it. At D = 128 dK and dV of 32 rows would
// take all registers that a thread can have, so a pair shares the work:
//   - `Role`: one warp makes S^T, P^T and dV, the other dP^T, dS^T and dK. `sums` is one gradient or two.
//   - P^T travels from the one to the other in fp32, as the lanes hold it, through the shared memory where dS^T
//     will stand: dS is made from all bits of P. A named barrier of 64 threads says when P^T is there. (Another one,
//     at the end of a tile, is for compute-sanitizer's racecheck alone.)
//   - Of a pair, one warp makes dQ before its other products and the other after them: while one is at
//     the exponentials, the other keeps the tensor cores busy.
//   - Eight warps have 128 keys, and tiles of 64 queries, which a warp takes at once (`chunk`). A device with
//     less shared memory has blocks of four warps, 64 keys and tiles of 32 queries.
//
// Expected limit: no unit alone. Tensor cores and shared memory would take about the same time, and with two warps per
// scheduler they overlap only in part.
#include <cmath>
#include <cstdint>

#include "attention/backward_workspace.h"
#include "attention/padded.h"
#include "device/backward_tile.h"
#include "device/named_barrier.h"
#include "device/swizzled_tile.h"
#include "device/watch.h"

namespace backward {
namespace {

using attention::BackwardArgs;
using attention::Problem;
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
template <class S, Role role, class T>
__device__ void multiply_tile(const Problem& p, float (&dv_reg)[2][S::D / 8][4], float (&dk_reg)[2][S::D / 8][4],
                              const T* k,                    // [32][D] in shared memory, as all that follows
                              const T* v,                    // [32][D]
                              const T* q,                    // [Br][D]
                              const T* d_o,                  // [Br][D]
                              const float* stats,            // [2][Br]
                              T* ds,                         // [32][64]
                              int i0, int j0, int pair,      // the first query and key, in their heads
                              unsigned q_row, Watched rows)  // the first query over all heads; the rows of dV and dK
{
  constexpr int Bc = S::Bc, Br = S::Br, D = S::D, chunk = S::chunk;
  // Where one warp of a pair leaves fragment [b][n] of P^T for the other: 512 bytes in a row, 32 queries to a page.
  const auto p_smem = [&](int b, int n) -> float4& {
    return reinterpret_cast<float4*>(ds + n / 4 * Bc * page_row)[(n % 4 * 2 + b) * 32 + threadIdx.x % 32];
  };
#pragma unroll
  for (int c = 0; c < Br; c += chunk) {
    float p_reg[2][chunk / 8][4];        // S^T, then P^T
    float ds_reg[2][chunk / 8][4];       // dP^T, then dS^T
    uint32_t p_half[2][chunk / 16][4];   // P^T as A fragments of T
    uint32_t ds_half[2][chunk / 16][4];  // and dS^T
    const Watched watched = {q_row + c, j0, p.seq_q - i0 - c, p.seq_k - j0};
    if (role != Role::ds_and_dk) {
      watch_step("S = Q K^T, P = exp(S - LSE)");
      multiply_by_transpose<Bc, Br, D, chunk>(p_reg, k, q + c * page_row);
      make_p<chunk>(p_reg, p.scale, stats + c, [&](int i) { return p.visible_keys(i0 + c + i) - j0; });
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
  if (role != Role::p_and_dv) watch("dK", rows, dk_reg, p.scale);
}

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
  int i0 = 0;
  unsigned q_row = kv_head * tensors.q_rows;
  copy_tile<Bc, D, S::threads>(k_smem, tensors.k + size_t(kv_row) * D, p.seq_k - j0);
  copy_tile<Bc, D, S::threads>(v_smem, tensors.v + size_t(kv_row) * D, p.seq_k - j0);
  copy_stage(end - tensors.q_tiles, i0, q_row);

  // dQ of a tile whose dS is in shared memory.
  const auto make_dq = [&](int tile) {
    watch_step("dQ += dS K");
    float dq_reg[2][4][4];
    const int right = 2 * (warp % (D / 32));
    multiply_transpose<Bc>(dq_reg, ds_smem + tile % 2 * S::ds_stage, warp / (D / 32), k_smem, right, right + 1);
    const int i0 = tile % ceil_div(p.seq_q, S::Br) * S::Br + warp / (D / 32) * 32,
              head = tile / ceil_div(p.seq_q, S::Br);
    watch("dQ", {int64_t(head) * p.seq_q + i0, warp % (D / 32) * 32, p.seq_q - i0, 32}, dq_reg, p.scale);
    add_dq<S>(tensors.dq_sum, dq_reg, tile);
  };

  float sums[S::pairs ? 1 : 2][2][D / 8][4] = {};  // dV and dK of 32 keys, or one of them
  auto &dv_reg = sums[0], &dk_reg = sums[S::pairs ? 0 : 1];

#pragma unroll 1
  for (int tile = end - tensors.q_tiles, before = -1; tile < end; before = tile++) {
    const bool last_of_head = i0 + Br >= p.seq_q;
    const int next_i0 = last_of_head ? 0 : i0 + Br;
    const unsigned tile_row = q_row;  // for watch()
    q_row += last_of_head ? p.seq_q - i0 : Br;
    cp_async_wait<0>();
    // This stage (and K and V) and dS of the tile before are in shared memory, and everyone is done with the stage
    // before and with dS of the tile before that.
    __syncthreads();
    copy_stage(tile + 1, next_i0, q_row);

    if (makes_ds && before >= 0) make_dq(before);
    const auto multiply = [&]<Role role>() {
      const T* q_tile = q_smem + tile % 2 * 2 * Br * D;
      multiply_tile<S, role>(p, dv_reg, dk_reg, k_smem + own * page_row, v_smem + own * page_row, q_tile,
                             q_tile + Br * D, stats_smem + tile % 2 * 2 * Br,
                             ds_smem + tile % 2 * S::ds_stage + own * page_row, i0, j0 + own, pair, tile_row,
                             {kv_row + own, 0, p.seq_k - j0 - own, D});
    };
    if constexpr (!S::pairs)
      multiply.template operator()<Role::all>();
    else if (makes_p)
      multiply.template operator()<Role::p_and_dv>();
    else
      multiply.template operator()<Role::ds_and_dk>();
    if (!makes_ds && before >= 0) make_dq(before);
    if (S::pairs) {
      // One warp has taken the other's P^T. The block's next barrier would say that, too; but compute-sanitizer's
      // racecheck takes threads to be in step only if they have waited at the same number of barriers.
      if (makes_ds)
        named_barrier_arrive(1 + S::key_warps + pair, 64);  // for racecheck alone
      else
        named_barrier_sync(1 + S::key_warps + pair, 64);  // for racecheck alone
    }
    i0 = next_i0;
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

template <class T, class S>
void launch_backward(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
  const attention::BackwardTiles<S> tiles(p);
  const auto [dq_sum, stats, turns, tickets] = attention::BackwardWorkspace::of(args.workspace, tiles);
  float4* const sums = reinterpret_cast<float4*>(dq_sum);
  const Tensors<T> tensors = {q, k, v, d_o, stats, dq_sum, dk, dv, tiles.kv_tiles, tiles.group_tiles, tiles.group_rows};
  launch(prepare<T, S>, {tiles.row_blocks, S::threads, 0, stream}, p, o, args.lse, d_o, stats, sums);
  launch(gradients<T, S>, {tiles.key_blocks, S::threads, S::shared_bytes, stream}, p, tensors);
  launch(convert<T, S>, {tiles.row_blocks / 2, S::threads, 0, stream}, p, sums, dq);
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype(p, [&]<class T>() {
    if (p.head_dim == 64)
      launch_backward<T, Shape64>(p, args, stream);
    else if (p.seq_k > SmallShape128::Bc && Shape128::shared_bytes <= largest_shared_memory())
      launch_backward<T, Shape128>(p, args, stream);
    else
      launch_backward<T, SmallShape128>(p, args, stream);
  });
}

// For tiles of 64 queries; those of 32 take no more.
size_t workspace_bytes(const Problem& p) { return attention::BackwardWorkspace::bytes(p, 64); }

constexpr attention::Backward unpadded = {.unsupported = attention::head_dim_not_8_to_128,
                                          .workspace_bytes = workspace_bytes,
                                          .run = run,
                                          .deterministic = false};

}  // namespace

extern const attention::Rung atomic;
constinit const attention::Rung atomic = {
    .name = "atomic",
    .idea = "at D = 128 two warps share 32 keys: one makes P and dV, the other dS and dK",
    .backward = attention::padded<unpadded>};

}  // namespace backward
