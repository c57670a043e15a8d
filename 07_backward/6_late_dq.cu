// Chapter 07, rung 6, late_dq: dQ of a tile is made one tile late.
//
//   prepare    a few lanes per query: log2(e) LSE and delta = rowsum(dO o O); and zeros where dQ will be added up
//   gradients  a thread block owns Bc rows of K and V and their gradients; Q and dO pass by in tiles of Br rows, of all
//              query heads that read this kv head
//   convert    dQ from its fp32 sum to the storage type
//
// Four warps share a block's keys, 32 to a warp (16 at D = 128). For each tile that passes by:
//
//   dQ of the tile before = dS K                                     32 x 32 of it a warp, added to other blocks' parts
//   S^T = K Q^T      P^T = 2^(S^T - LSE)          dV += P^T dO       32 queries at a time, P^T from registers
//   dP^T = V dO^T    dS^T = P^T o (dP^T - delta)  dK += dS^T Q       likewise; dS^T also goes to shared memory
//
// What changed since 5_one_loop: the second barrier of a tile is gone. dS of a tile is used after the first barrier of
// the next one, which stands there anyway. So dS lies in two stages, as Q and dO do, and dQ of the last tile is made
// after the loop. One warp may be at its products while another is at dQ or at the exponentials. The copy of the next
// tile starts after that barrier, too, and has a whole tile's time to arrive.
//
// Expected limit: at D = 64 no unit alone: tensor cores and shared memory would take about the same time, and with two
// warps per scheduler they overlap only in part. At D = 128 shared memory: a warp has 16 keys.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "attention/backward_workspace.h"
#include "attention/padded.h"
#include "device/backward_tile.h"
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
  static constexpr int warps = Br / 32 * (D / 32);  // each makes 32 x 32 of a tile's dQ
  static constexpr int threads = 32 * warps;
  static constexpr int keys = Bc / warps;  // of a warp
  static constexpr int chunk = 32;         // queries at a time; dK and dV leave half the registers

  // K, V; two stages each of Q and dO, of dS^T in rows of 64, and of the statistics.
  static constexpr size_t shared_bytes =
      (2 * Bc * D + 4 * Br * D + 2 * Bc * 64) * sizeof(uint16_t) + 2 * 2 * Br * sizeof(float);
};
using Shape64 = Shape<64, 128, 64, 2>;   // 97 KB
using Shape128 = Shape<128, 64, 32, 2>;  // 81 KB

// The products of one tile of queries (but for dQ) with the warp's keys.
template <class S, class T>
__device__ void multiply_tile(const Problem& p, float (&dv_reg)[S::keys / 16][S::D / 8][4],
                              float (&dk_reg)[S::keys / 16][S::D / 8][4],
                              const T* k,                    // [keys][D] in shared memory, as all that follows
                              const T* v,                    // [keys][D]
                              const T* q,                    // [Br][D]
                              const T* d_o,                  // [Br][D]
                              const float* stats,            // [2][Br]
                              T* ds,                         // [keys][64]
                              int i0, int j0,                // the first query and key, in their heads
                              unsigned q_row, Watched rows)  // the first query over all heads; the rows of dV and dK
{
  constexpr int Bc = S::Bc, Br = S::Br, D = S::D, chunk = S::chunk;
#pragma unroll
  for (int c = 0; c < Br; c += chunk) {
    float p_reg[S::keys / 16][chunk / 8][4];        // S^T, then P^T
    float ds_reg[S::keys / 16][chunk / 8][4];       // dP^T, then dS^T
    uint32_t p_half[S::keys / 16][chunk / 16][4];   // P^T as A fragments of T
    uint32_t ds_half[S::keys / 16][chunk / 16][4];  // and dS^T
    const Watched watched = {q_row + c, j0, p.seq_q - i0 - c, p.seq_k - j0};
    watch_step("S = Q K^T, P = exp(S - LSE)");
    multiply_by_transpose<Bc, Br, D, chunk>(p_reg, k, q + c * page_row);
    make_p<chunk>(p_reg, p.scale, stats + c, [&](int i) { return p.visible_keys(i0 + c + i) - j0; });
    watch_transpose("P", watched, p_reg, 1 / p_factor);
    round_fragments<T, chunk>(p_half, p_reg);

    watch_step("dP = dO V^T, dS = P (dP - delta)");
    multiply_by_transpose<Bc, Br, D, chunk>(ds_reg, v, d_o + c * page_row);
    watch_transpose("dP", watched, ds_reg);
    make_ds<chunk>(ds_reg, fragments_of(p_reg), stats + Br + c);
    watch_transpose("dS", watched, ds_reg);
    round_fragments<T, chunk>(ds_half, ds_reg);
    store_fragments<Bc, chunk>(ds, ds_half, c / 16);
    watch_step("dV += P^T dO, dK += dS^T Q");
    // Both sums come after dS: until then P^T in fp32 occupies registers that their operands need.
    add_product<Br, D, chunk>(dv_reg, p_half, d_o + c * page_row);
    add_product<Br, D, chunk>(dk_reg, ds_half, q + c * page_row);
  }
  watch("dV", rows, dv_reg, 1 / p_factor);
  watch("dK", rows, dk_reg, p.scale);
}

template <class T, class S>
__global__ void __launch_bounds__(S::threads, S::blocks) gradients(Problem p, Tensors<T> tensors) {
  constexpr int D = S::D, Bc = S::Bc, Br = S::Br;
  T* k_smem = dynamic_shared<T>();                                      // [Bc][D]
  T* v_smem = k_smem + Bc * D;                                          // [Bc][D]
  T* q_smem = v_smem + Bc * D;                                          // [2 stages][Q and dO][Br][D]
  T* ds_smem = q_smem + 2 * 2 * Br * D;                                 // [2 stages][Bc][64], dS^T
  float* stats_smem = reinterpret_cast<float*>(ds_smem + 2 * Bc * 64);  // [2 stages][2][Br]

  const int kv_head = blockIdx.x / tensors.kv_tiles, j0 = (blockIdx.x - kv_head * tensors.kv_tiles) * Bc;
  const size_t kv_row = size_t(kv_head) * p.seq_k + j0;     // the first of the block's keys, over all kv heads
  const int warp = threadIdx.x / 32, own = warp * S::keys;  // the first of this warp's keys, in the block
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
  copy_tile<Bc, D, S::threads>(k_smem, tensors.k + kv_row * D, p.seq_k - j0);
  copy_tile<Bc, D, S::threads>(v_smem, tensors.v + kv_row * D, p.seq_k - j0);
  copy_stage(end - tensors.q_tiles, i0, q_row);

  // dQ of a tile whose dS is in shared memory.
  const auto make_dq = [&](int tile) {
    watch_step("dQ += dS K");
    float dq_reg[2][4][4];
    const int right = 2 * (warp % (D / 32));
    multiply_transpose<Bc>(dq_reg, ds_smem + tile % 2 * Bc * 64, warp / (D / 32), k_smem, right, right + 1);
    const int i0 = tile % ceil_div(p.seq_q, S::Br) * S::Br + warp / (D / 32) * 32,
              head = tile / ceil_div(p.seq_q, S::Br);
    watch("dQ", {int64_t(head) * p.seq_q + i0, warp % (D / 32) * 32, p.seq_q - i0, 32}, dq_reg, p.scale);
    add_dq<S>(tensors.dq_sum, dq_reg, tile);
  };

  float dv_reg[S::keys / 16][D / 8][4] = {}, dk_reg[S::keys / 16][D / 8][4] = {};

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

    if (before >= 0) make_dq(before);
    const T* q_tile = q_smem + tile % 2 * 2 * Br * D;
    multiply_tile<S>(p, dv_reg, dk_reg, k_smem + own * page_row, v_smem + own * page_row, q_tile, q_tile + Br * D,
                     stats_smem + tile % 2 * 2 * Br, ds_smem + (tile % 2 * Bc + own) * 64, i0, j0 + own, tile_row,
                     {int64_t(kv_row) + own, 0, p.seq_k - j0 - own, D});
    i0 = next_i0;
  }
  __syncthreads();  // dS of the last tile is in shared memory
  make_dq(end - 1);
  __syncthreads();  // everyone is done with K and V

  const size_t to = (kv_row + own) * D;
  watch_step("dK and dV leave");
  store_rows<Bc, D>(tensors.dv + to, v_smem + own * page_row, dv_reg, 1 / p_factor, p.seq_k - j0 - own);
  store_rows<Bc, D>(tensors.dk + to, k_smem + own * page_row, dk_reg, p.scale, p.seq_k - j0 - own);
}

template <class T, class S>
__global__ void convert(Problem p,
                        const float4* dq_sum,  // [B * H * tiles][warps][2][4][8 g][4 t]
                        T* dq)                 // [B, H, Nq, D]
{
  convert_dq<T, S>(p, dq_sum, dq);
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    using S = std::conditional_t<D == 64, Shape64, Shape128>;
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

extern const attention::Rung late_dq;
constinit const attention::Rung late_dq = {
    .name = "late_dq",
    .idea = "dQ of a tile is made beside the next tile's products: one barrier less",
    .backward = attention::padded<unpadded>};

}  // namespace backward
