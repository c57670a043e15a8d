// Chapter 07, rung 3, mma: the two loops of 2_recompute on the tensor cores.
//
//   row_stats  a few lanes per query row: log2(e) LSE and D = rowsum(dO o O), for the other two
//   dk_dv      a thread block owns Bc = 64 rows of K, of one kv head; Q and dO pass by in tiles of Br = 64 rows, of all
//              query heads of the group, one after the other
//   dq         a thread block owns Br = 64 rows of Q, of one head; K and V pass by in tiles of Bc = 64 rows
//
// Four warps share a block's rows, 16 to a warp, the height of an mma. For each tile that passes by:
//
//   dk_dv                                            dq
//   S^T = K Q^T             16 x 64 a warp           S = Q K^T             16 x 64 a warp
//   P^T = 2^(S^T - LSE)     LSE by column            P = 2^(S - LSE)       LSE by row
//   dV += P^T dO            P^T from registers
//   dP^T = V dO^T                                    dP = dO V^T
//   dS^T = P^T o (dP^T - D)                          dS = P o (dP - D)
//   dK += dS^T Q            dS^T from registers      dQ += dS K            dS from registers
//
// (the scale is left out here: it goes into the exponent, and into dQ and dK at the end). Each output has one owner, so
// nothing is added up in memory, and the result is the same bits in every run. The price is that S and dP are computed
// twice: seven products where the equations have five.
//
// What changed since 2_recompute:
//   - mma.m16n8k16, ldmatrix from swizzled tiles and two stages of cp.async, as in chapter 06.
//   - dk_dv works on the transposes. The rows of dV and dK are keys, so P and dS enter their products transposed. Made
//     as K Q^T and V dO^T instead of Q K^T and dO V^T, they come out of the tensor cores as C fragments with keys for
//     rows, and two of those side by side are the A fragment that the next product wants: neither P nor dS ever leaves
//     the registers.
//
// Expected limit: shared memory. A fragment of 16 x 8 that passes by is used for one mma only.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "device/math.h"
#include "device/swizzled_tile.h"

namespace backward {
namespace {

using attention::BackwardArgs;
using attention::DType;
using attention::Problem;
using namespace swizzled_tile;

constexpr int warps = 4, threads = 32 * warps;
constexpr int Br = 64, Bc = 64;  // rows of a tile of Q, dO; of K, V

// The statistics of a tile of query rows, in the workspace: two lines for each, [B * H * tiles][2][Br].
constexpr int stats_per_tile = 2 * Br;  // log2(e) LSE, then D

__host__ __device__ int tiles(int rows) { return (rows + 63) / 64; }

// D / 8 lanes per query row, 8 elements each. Rows that fill up the last tile of a head get LSE = +inf: whatever their
// S, P = 2^(S - LSE) is 0. Rows that see no key have LSE = -inf, and the mask sets all of their P to 0.
template <class T, int D>
__global__ void row_stats(Problem p,
                          const T* o,        // [B, H, Nq, D]
                          const float* lse,  // [B, H, Nq]
                          const T* d_o,      // [B, H, Nq, D]
                          float* stats)      // [B * H * tiles][2][Br]
{
  constexpr int lanes = D / 8;
  const unsigned row = (blockIdx.x * threads + threadIdx.x) / lanes, lane = threadIdx.x % lanes;
  const unsigned tile = row / Br, head = tile / tiles(p.seq_q), i = tile % tiles(p.seq_q) * Br + row % Br;
  float lse_log2 = INFINITY, sum = 0;
  if (i < unsigned(p.seq_q)) {
    const size_t q_row = size_t(head) * p.seq_q + i;
    const Pack8<T> o_pack = load_pack8(o + q_row * D + lane * 8), d_o_pack = load_pack8(d_o + q_row * D + lane * 8);
    for (int d = 0; d < 8; d++) sum += to_float(o_pack.x[d]) * to_float(d_o_pack.x[d]);
    lse_log2 = lse[q_row] * 1.44269504f;  // log2(e)
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffff, sum, distance);
  if (lane == 0) {
    stats[size_t(tile) * stats_per_tile + row % Br] = lse_log2;
    stats[size_t(tile) * stats_per_tile + Br + row % Br] = sum;
  }
}

// Two blocks per multiprocessor: 256 registers a thread, of which dK and dV take 128 at D = 128.
template <class T, int D>
__global__ void __launch_bounds__(threads, 2) dk_dv(Problem p,
                                                    const T* q,          // [B, H, Nq, D]
                                                    const T* k,          // [B, Hkv, Nk, D]
                                                    const T* v,          // [B, Hkv, Nk, D]
                                                    const T* d_o,        // [B, H, Nq, D]
                                                    const float* stats,  // [B * H * tiles][2][Br]
                                                    T* dk,               // [B, Hkv, Nk, D]
                                                    T* dv)               // [B, Hkv, Nk, D]
{
  T* k_smem = dynamic_shared<T>();                                        // [Bc][D]
  T* v_smem = k_smem + Bc * D;                                            // [Bc][D]
  T* q_smem = v_smem + Bc * D;                                            // [2 stages][Q and dO][Br][D]
  float* stats_smem = reinterpret_cast<float*>(q_smem + 2 * 2 * Br * D);  // [2 stages][2][Br]

  const int kv_tiles = tiles(p.seq_k), q_tiles = tiles(p.seq_q);
  const int kv_head = blockIdx.x / kv_tiles, j0 = blockIdx.x % kv_tiles * Bc;
  const int group = p.heads / p.kv_heads;  // query heads kv_head * group and up, over the batch, read this kv head
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const size_t kv_row = size_t(kv_head) * p.seq_k + j0;
  const float scale_log2 = p.scale * 1.44269504f;  // log2(e)

  // Tile `tile` of the group: of head tile / q_tiles.
  const auto copy_stage = [&](int tile) {
    const int i0 = tile % q_tiles * Br;
    const size_t row = size_t(kv_head * group + tile / q_tiles) * p.seq_q + i0;
    copy_tile<64, D, threads>(q_smem + tile % 2 * 2 * Br * D, q + row * D, p.seq_q - i0);
    copy_tile<64, D, threads>(q_smem + (tile % 2 * 2 + 1) * Br * D, d_o + row * D, p.seq_q - i0);
    if (threadIdx.x < stats_per_tile / 4)
      cp_async_16(stats_smem + tile % 2 * stats_per_tile + threadIdx.x * 4,
                  stats + (size_t(kv_head) * group * q_tiles + tile) * stats_per_tile + threadIdx.x * 4);
  };
  copy_tile<64, D, threads>(k_smem, k + kv_row * D, p.seq_k - j0);
  copy_tile<64, D, threads>(v_smem, v + kv_row * D, p.seq_k - j0);
  copy_stage(0);
  cp_async_commit();

  float dk_reg[1][D / 8][4] = {}, dv_reg[1][D / 8][4] = {};
#pragma unroll 1
  for (int tile = 0; tile < group * q_tiles; tile++) {
    cp_async_wait<0>();
    __syncthreads();  // this stage (and K and V) is in shared memory, and everyone is done with the stage before
    if (tile + 1 < group * q_tiles) copy_stage(tile + 1);
    cp_async_commit();
    const T* q_tile = q_smem + tile % 2 * 2 * Br * D;
    const T* do_tile = q_tile + Br * D;
    const float* lse = stats_smem + tile % 2 * stats_per_tile;  // [Br]
    const float* row_sum = lse + Br;                            // [Br]

    float p_reg[1][8][4];     // S^T, then P^T, then dS^T
    uint32_t x_reg[1][4][4];  // P^T, then dS^T, as A fragments
    multiply_by_transpose<64, 64, D, 64>(p_reg, k_smem + warp * 16 * 64, q_tile);
    const int i0 = tile % q_tiles * Br;
    const bool masked = j0 + Bc > p.visible_keys(i0);  // of the tile's rows, the first sees the fewest keys
#pragma unroll
    for (int n = 0; n < 8; n++)
      for (int r = 0; r < 4; r++) {
        const int i = 8 * n + 2 * t + r % 2, j = j0 + warp * 16 + 8 * (r / 2) + g;
        float x = fmaf(p_reg[0][n][r], scale_log2, -lse[i]);
        if (masked && j >= p.visible_keys(i0 + i)) x = -INFINITY;
        p_reg[0][n][r] = exp2_approx(x);
      }
    round_fragments<T, 64>(x_reg, p_reg);
    add_product<64, D, 64>(dv_reg, x_reg, do_tile);

    float dp_reg[1][8][4];  // dP^T
    multiply_by_transpose<64, 64, D, 64>(dp_reg, v_smem + warp * 16 * 64, do_tile);
#pragma unroll
    for (int n = 0; n < 8; n++)
      for (int r = 0; r < 4; r++) p_reg[0][n][r] *= dp_reg[0][n][r] - row_sum[8 * n + 2 * t + r % 2];
    round_fragments<T, 64>(x_reg, p_reg);
    add_product<64, D, 64>(dk_reg, x_reg, q_tile);
  }
  const int j = j0 + warp * 16;
  const size_t to = (size_t(kv_head) * p.seq_k + j) * D;
  __syncwarp();  // all lanes are done with the warp's rows of K and V
  store_rows<64, D>(dk + to, k_smem + warp * 16 * 64, dk_reg, p.scale, p.seq_k - j);
  store_rows<64, D>(dv + to, v_smem + warp * 16 * 64, dv_reg, 1, p.seq_k - j);
}

template <class T, int D>
__global__ void __launch_bounds__(threads, 2) dq(Problem p,
                                                 const T* q,          // [B, H, Nq, D]
                                                 const T* k,          // [B, Hkv, Nk, D]
                                                 const T* v,          // [B, Hkv, Nk, D]
                                                 const T* d_o,        // [B, H, Nq, D]
                                                 const float* stats,  // [B * H * tiles][2][Br]
                                                 T* dq)               // [B, H, Nq, D]
{
  T* q_smem = dynamic_shared<T>();  // [Br][D]
  T* do_smem = q_smem + Br * D;     // [Br][D]
  T* kv_smem = do_smem + Br * D;    // [2 stages][K and V][Bc][D]

  const int q_tiles = tiles(p.seq_q);
  const int head = blockIdx.x / q_tiles, i0 = blockIdx.x % q_tiles * Br;
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const size_t q_row = size_t(head) * p.seq_q + i0, kv_row = size_t(p.kv_head(head)) * p.seq_k;
  const float scale_log2 = p.scale * 1.44269504f;  // log2(e)

  const auto copy_stage = [&](int j0) {
    copy_tile<64, D, threads>(kv_smem + j0 / Bc % 2 * 2 * Bc * D, k + (kv_row + j0) * D, p.seq_k - j0);
    copy_tile<64, D, threads>(kv_smem + (j0 / Bc % 2 * 2 + 1) * Bc * D, v + (kv_row + j0) * D, p.seq_k - j0);
  };
  copy_tile<64, D, threads>(q_smem, q + q_row * D, p.seq_q - i0);
  copy_tile<64, D, threads>(do_smem, d_o + q_row * D, p.seq_q - i0);
  copy_stage(0);
  cp_async_commit();

  float lse[2], row_sum[2];  // of rows 8 h + g
  int visible[2];
  for (int h = 0; h < 2; h++) {
    const int row = warp * 16 + 8 * h + g;
    lse[h] = stats[size_t(blockIdx.x) * stats_per_tile + row];
    row_sum[h] = stats[size_t(blockIdx.x) * stats_per_tile + Br + row];
    visible[h] = p.visible_keys(i0 + row);
  }

  float dq_reg[1][D / 8][4] = {};
#pragma unroll 1
  for (int j0 = 0; j0 < p.seq_k; j0 += Bc) {
    cp_async_wait<0>();
    __syncthreads();  // this stage (and Q and dO) is in shared memory, and everyone is done with the stage before
    if (j0 + Bc < p.seq_k) copy_stage(j0 + Bc);
    cp_async_commit();
    const T* k_tile = kv_smem + j0 / Bc % 2 * 2 * Bc * D;
    const T* v_tile = k_tile + Bc * D;

    float s_reg[1][8][4], dp_reg[1][8][4];
    uint32_t ds_reg[1][4][4];
    multiply_by_transpose<64, 64, D, 64>(s_reg, q_smem + warp * 16 * 64, k_tile);
    multiply_by_transpose<64, 64, D, 64>(dp_reg, do_smem + warp * 16 * 64, v_tile);
    const bool masked = j0 + Bc > p.visible_keys(i0);
#pragma unroll
    for (int n = 0; n < 8; n++)
      for (int r = 0; r < 4; r++) {
        float x = fmaf(s_reg[0][n][r], scale_log2, -lse[r / 2]);
        if (masked && j0 + 8 * n + 2 * t + r % 2 >= visible[r / 2]) x = -INFINITY;
        s_reg[0][n][r] = exp2_approx(x) * (dp_reg[0][n][r] - row_sum[r / 2]);  // dS
      }
    round_fragments<T, 64>(ds_reg, s_reg);
    add_product<64, D, 64>(dq_reg, ds_reg, k_tile);
  }
  __syncwarp();  // all lanes are done with the warp's rows of Q
  const int i = i0 + warp * 16;
  const size_t to = (size_t(head) * p.seq_q + i) * D;
  store_rows<64, D>(dq + to, q_smem + warp * 16 * 64, dq_reg, p.scale, p.seq_q - i);
}

template <class T, int D>
void launch_backward(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  const T *q = static_cast<const T*>(args.q), *k = static_cast<const T*>(args.k), *v = static_cast<const T*>(args.v);
  const T *o = static_cast<const T*>(args.o), *d_o = static_cast<const T*>(args.d_o);
  float* stats = static_cast<float*>(args.workspace);
  const unsigned q_blocks = unsigned(p.batch) * p.heads * tiles(p.seq_q);
  const unsigned kv_blocks = unsigned(p.batch) * p.kv_heads * tiles(p.seq_k);
  const size_t dq_shared = (2 * Br + 4 * Bc) * D * sizeof(T);
  const size_t dk_dv_shared = (2 * Bc + 4 * Br) * D * sizeof(T) + 2 * stats_per_tile * sizeof(float);

  launch(row_stats<T, D>, {q_blocks * (Br * (D / 8) / threads), threads, 0, stream}, p, o, args.lse, d_o, stats);
  launch(dk_dv<T, D>, {kv_blocks, threads, dk_dv_shared, stream}, p, q, k, v, d_o, stats, static_cast<T*>(args.dk),
         static_cast<T*>(args.dv));
  launch(dq<T, D>, {q_blocks, threads, dq_shared, stream}, p, q, k, v, d_o, stats, static_cast<T*>(args.dq));
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  if (p.dtype == DType::fp16)
    (p.head_dim == 64 ? launch_backward<__half, 64> : launch_backward<__half, 128>)(p, args, stream);
  else
    (p.head_dim == 64 ? launch_backward<__nv_bfloat16, 64> : launch_backward<__nv_bfloat16, 128>)(p, args, stream);
}

size_t workspace_bytes(const Problem& p) {
  return size_t(p.batch) * p.heads * tiles(p.seq_q) * stats_per_tile * sizeof(float);
}

}  // namespace

extern const attention::Rung mma;
constinit const attention::Rung mma = {
    .name = "mma",
    .idea = "tensor cores on the transposes: P and dS go from one product to the next in registers",
    .backward = {attention::head_dim_not_64_or_128, workspace_bytes, run}};

}  // namespace backward
