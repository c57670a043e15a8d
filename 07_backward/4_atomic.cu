// Chapter 07, rung 4, atomic: one loop, five products, and dQ added up in memory.
//
//   prepare    a few lanes per query row: log2(e) LSE and D = rowsum(dO o O); and zeros where dQ will be added up
//   gradients  a thread block owns Bc rows of K and V and their gradients; Q and dO pass by in tiles of Br rows, of all
//              query heads that read this kv head
//   convert    dQ from its fp32 sum to the storage type
//
// Each of a block's rows belongs to one warp or one pair of warps, 32 rows to each. For each tile that passes by:
//
//   S^T = K Q^T      P^T = 2^(S^T - LSE)        dV += P^T dO       32 x Br, P^T from registers
//   dP^T = V dO^T    dS^T = P^T o (dP^T - D)    dK += dS^T Q       likewise; dS^T also goes to shared memory
//   dQ of the tile before = dS K                                   32 x 32 of it a warp, added to other blocks' parts
//
// At D = 64 a warp does all of it. At D = 128 dK and dV of 32 rows are all the registers that a warp can have, so a
// pair shares the work: one warp makes S^T, P^T and dV, the other dP^T, dS^T and dK. P^T travels through shared memory,
// in the place where dS^T will stand.
//
// What changed since 3_mma:
//   - One loop. S and dP are computed once, in the blocks that own keys: five products instead of seven. The price is
//     that every block has a part of every row of dQ. The parts meet in fp32 in the workspace, by atomic additions, in
//     whatever order the blocks come: the last bits of dQ differ from run to run.
//   - That sum is laid out as the warps hold it, [tile][warp][fragment][lane], so that an addition of four floats by
//     each lane is 512 bytes in a row.
//   - 32 rows a warp: each fragment of Q and dO that passes by is used by two mma, as in chapter 06, 4_rows32.
//   - dQ of a tile waits for dS of all warps. It is made one tile late, so that this costs no barrier of its own. Of a
//     pair, one warp makes it before its other products and the other after them: while one is at the exponentials, the
//     other keeps the tensor cores busy.
//
// Expected limit: no unit alone. Tensor cores and shared memory would take about the same time, and with two warps per
// scheduler they overlap only in part.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "device/atomic_add.h"
#include "device/math.h"
#include "device/named_barrier.h"
#include "device/swizzled_tile.h"

namespace backward {
namespace {

using attention::BackwardArgs;
using attention::DType;
using attention::Problem;
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
  static_assert(pairs || warps == key_warps);

  // K, V; two stages each of Q and dO, of dS^T in rows of 64, and of the statistics.
  static constexpr size_t shared_bytes =
      (2 * Bc * D + 4 * Br * D + 2 * Bc * 64) * sizeof(uint16_t) + 2 * 2 * Br * sizeof(float);
};
using Shape64 = Shape<64, 128, 64, 2>;        // 97 KB
using Shape128 = Shape<128, 128, 64, 1>;      // 161 KB: compute capability 8.0, 9.0 and 10.x
using SmallShape128 = Shape<128, 64, 32, 1>;  // 81 KB, for devices that have no more, and for few keys

// What a warp does for its 32 keys.
enum class Role { all, p_and_dv, ds_and_dk };

template <class T>
struct Tensors {
  const T* q;           // [B, H, Nq, D]
  const T* k;           // [B, Hkv, Nk, D]
  const T* v;           // [B, Hkv, Nk, D]
  const T* d_o;         // [B, H, Nq, D]
  const float* stats;   // [B * H * tiles][2][Br], log2(e) LSE, then D
  float* dq_sum;        // [B * H * tiles][warps][8][32][4]: fragments (2 x 4 of 16 x 8) of 32 lanes
  T* dk;                // [B, Hkv, Nk, D]
  T* dv;                // [B, Hkv, Nk, D]
  int kv_tiles;         // tiles of a kv head
  int q_tiles, q_rows;  // tiles and rows of all query heads that read one kv head
};

__host__ __device__ int tiles(int rows, int tile_rows) { return (rows + tile_rows - 1) / tile_rows; }

// Adds the warp's part of dQ of tile `tile`, counted over all heads.
template <class S>
__device__ void add_dq(float* dq_sum,  // [B * H * tiles][warps][8][32][4]
                       const float (&dq_reg)[2][4][4], size_t tile) {
  float* sum = dq_sum + (tile * S::threads + threadIdx.x / 32 * 32) * 32 + threadIdx.x % 32 * 4;
#pragma unroll
  for (int b = 0; b < 2; b++)
    for (int n = 0; n < 4; n++) atomic_add_4(sum + (b * 4 + n) * 32 * 4, dq_reg[b][n]);
}

// D / 8 lanes per query row, 8 elements each. Rows that fill up the last tile of a head get LSE = +inf: whatever their
// S, P = 2^(S - LSE) is 0. Rows that see no key have LSE = -inf, and the mask sets all of their P to 0.
template <class T, class S>
__global__ void prepare(Problem p,
                        const T* o,        // [B, H, Nq, D]
                        const float* lse,  // [B, H, Nq]
                        const T* d_o,      // [B, H, Nq, D]
                        float* stats,      // [B * H * tiles][2][Br]
                        float4* dq_sum)    // [B * H * tiles][Br * D / 4]
{
  constexpr int D = S::D, Br = S::Br, lanes = D / 8;
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x, row = thread / lanes, lane = thread % lanes;
  const unsigned head_tiles = tiles(p.seq_q, Br), tile = row / Br, head = tile / head_tiles;
  const unsigned i = tile % head_tiles * Br + row % Br;
  float lse_log2 = INFINITY, sum = 0;
  if (i < unsigned(p.seq_q)) {
    const size_t q_row = size_t(head) * p.seq_q + i;
    const Pack8<T> o_pack = load_pack8(o + q_row * D + lane * 8), d_o_pack = load_pack8(d_o + q_row * D + lane * 8);
    for (int d = 0; d < 8; d++) sum += to_float(o_pack.x[d]) * to_float(d_o_pack.x[d]);
    lse_log2 = lse[q_row] * 1.44269504f;  // log2(e)
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffff, sum, distance);
  if (lane == 0) {
    stats[(size_t(tile) * 2) * Br + row % Br] = lse_log2;
    stats[(size_t(tile) * 2 + 1) * Br + row % Br] = sum;
  }
  for (int half = 0; half < 2; half++) dq_sum[size_t(thread) * 2 + half] = make_float4(0, 0, 0, 0);
}

// P^T = 2^(S^T - LSE) of 32 keys and `chunk` queries, as A fragments.
template <class S, class T>
__device__ void make_p(uint32_t (&p_reg)[2][S::chunk / 16][4], const Problem& p,
                       const T* k,        // [32][D] in shared memory, as all that follows
                       const T* q,        // [chunk][D]
                       const float* lse,  // [chunk], log2(e) LSE
                       int i0, int j0)    // the first query and key, in their heads
{
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const float scale_log2 = p.scale * 1.44269504f;  // log2(e)
  float x[2][S::chunk / 8][4];                     // S^T, P^T
  multiply_by_transpose<S::Bc, S::Br, S::D, S::chunk>(x, k, q);
#pragma unroll
  for (int n = 0; n < S::chunk / 8; n++) {
    const float2 l = *reinterpret_cast<const float2*>(lse + 8 * n + 2 * t);
    for (int b = 0; b < 2; b++)
      for (int r = 0; r < 4; r++) x[b][n][r] = fmaf(x[b][n][r], scale_log2, r % 2 ? -l.y : -l.x);
  }
  if (j0 + 32 > p.visible_keys(i0)) {  // of these queries, the first sees the fewest keys
#pragma unroll
    for (int n = 0; n < S::chunk / 8; n++)
      for (int e = 0; e < 2; e++) {
        const int visible = p.visible_keys(i0 + 8 * n + 2 * t + e) - j0 - g;
        for (int b = 0; b < 2; b++)
          for (int h = 0; h < 2; h++)
            if (16 * b + 8 * h >= visible) x[b][n][2 * h + e] = -INFINITY;
      }
  }
#pragma unroll
  for (int b = 0; b < 2; b++)
    for (int n = 0; n < S::chunk / 8; n++)
      for (int r = 0; r < 4; r++) x[b][n][r] = exp2_approx(x[b][n][r]);
  round_fragments<T, S::chunk>(p_reg, x);
}

// dS^T = P^T o (dP^T - D) in the place of P^T; in a pair, of the P^T that the other warp has put into shared memory.
template <class S, class T>
__device__ void make_ds(uint32_t (&p_reg)[2][S::chunk / 16][4],
                        const float (&dp)[2][S::chunk / 8][4],  // dP^T
                        const T* p_smem,                        // [32][64] in shared memory
                        const float* row_sum)                   // [chunk], D
{
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int step = 0; step < S::chunk / 16; step++) {
    if (S::pairs)
      for (int b = 0; b < 2; b++)
        ldmatrix_x4(p_reg[b][step], p_smem + right_of<S::Bc>(down_then_right(), step) + b * 16 * 64);
    for (int r = 0; r < 4; r++) {
      const float2 d = *reinterpret_cast<const float2*>(row_sum + 16 * step + r / 2 * 8 + 2 * t);
      for (int b = 0; b < 2; b++) {
        const float2 p_pair = unpack2<T>(p_reg[b][step][r]);
        const float* dp_pair = dp[b][2 * step + r / 2] + r % 2 * 2;
        p_reg[b][step][r] = pack2<T>(p_pair.x * (dp_pair[0] - d.x), p_pair.y * (dp_pair[1] - d.y));
      }
    }
  }
}

// The products of one tile of queries (but for dQ) with the warp's 32 keys: those of its role.
template <class S, Role role, class T>
__device__ void multiply_tile(const Problem& p, float (&dv_reg)[2][S::D / 8][4], float (&dk_reg)[2][S::D / 8][4],
                              const T* k,                // [32][D] in shared memory, as all that follows
                              const T* v,                // [32][D]
                              const T* q,                // [Br][D]
                              const T* d_o,              // [Br][D]
                              const float* lse,          // [2][Br], log2(e) LSE, then D
                              T* ds,                     // [32][64]
                              int i0, int j0, int pair)  // the first query and key, in their heads
{
  constexpr int Bc = S::Bc, Br = S::Br, D = S::D, chunk = S::chunk;
#pragma unroll
  for (int c = 0; c < Br; c += chunk) {
    uint32_t x_reg[2][chunk / 16][4];  // P^T, then dS^T
    if (role != Role::ds_and_dk) {
      make_p<S>(x_reg, p, k, q + c * 64, lse + c, i0 + c, j0);
      if (S::pairs) {
        store_fragments<Bc, chunk>(ds, x_reg, 0);
        named_barrier_arrive(1 + pair, 64);  // P^T is there; whoever takes it may come later
      }
      add_product<Br, D, chunk>(dv_reg, x_reg, d_o + c * 64);
    }
    if (role != Role::p_and_dv) {
      float dp[2][chunk / 8][4];
      multiply_by_transpose<Bc, Br, D, chunk>(dp, v, d_o + c * 64);
      if (S::pairs) named_barrier_sync(1 + pair, 64);  // P^T is in shared memory
      make_ds<S>(x_reg, dp, ds, lse + Br + c);
      if (S::pairs) __syncwarp();  // all lanes have P^T, and dS^T may take its place
      store_fragments<Bc, chunk>(ds, x_reg, c / 16);
      add_product<Br, D, chunk>(dk_reg, x_reg, q + c * 64);
    }
  }
}

template <class T, class S>
__global__ void __launch_bounds__(S::threads, S::blocks) gradients(Problem p, Tensors<T> tensors) {
  constexpr int D = S::D, Bc = S::Bc, Br = S::Br;
  T* k_smem = dynamic_shared<T>();                                      // [Bc][D]
  T* v_smem = k_smem + Bc * D;                                          // [Bc][D]
  T* q_smem = v_smem + Bc * D;                                          // [2 stages][Q and dO][Br][D]
  T* ds_smem = q_smem + 2 * 2 * Br * D;                                 // [2 stages][Bc][64], dS^T, and P^T before it
  float* stats_smem = reinterpret_cast<float*>(ds_smem + 2 * Bc * 64);  // [2 stages][2][Br]

  const int kv_head = blockIdx.x / tensors.kv_tiles, j0 = (blockIdx.x - kv_head * tensors.kv_tiles) * Bc;
  const unsigned kv_row = kv_head * p.seq_k + j0;  // the first of the block's keys, over all kv heads
  const int warp = threadIdx.x / 32;
  const int pair = warp % S::key_warps, own = pair * 32;  // the first of this warp's keys, in the block
  const bool makes_ds = !S::pairs || warp >= S::key_warps, makes_p = !S::pairs || !makes_ds;
  const unsigned first_tile = kv_head * tensors.q_tiles;  // over all heads

  // Tile `tile` of the group's queries: from row i0 of its head, row `q_row` over all heads.
  const auto copy_stage = [&](int tile, int i0, unsigned q_row) {
    if (tile < tensors.q_tiles) {
      T* to = q_smem + tile % 2 * 2 * Br * D;
      copy_tile<Br, D, S::threads>(to, tensors.q + size_t(q_row) * D, p.seq_q - i0);
      copy_tile<Br, D, S::threads>(to + Br * D, tensors.d_o + size_t(q_row) * D, p.seq_q - i0);
      if (threadIdx.x < 2 * Br / 4)
        cp_async_16(stats_smem + tile % 2 * 2 * Br + threadIdx.x * 4,
                    tensors.stats + size_t(first_tile + tile) * 2 * Br + threadIdx.x * 4);
    }
    cp_async_commit();
  };
  int i0 = 0;
  unsigned q_row = kv_head * tensors.q_rows;
  copy_tile<Bc, D, S::threads>(k_smem, tensors.k + size_t(kv_row) * D, p.seq_k - j0);
  copy_tile<Bc, D, S::threads>(v_smem, tensors.v + size_t(kv_row) * D, p.seq_k - j0);
  copy_stage(0, i0, q_row);

  // dQ of a tile whose dS is in shared memory.
  const auto make_dq = [&](int tile) {
    float dq_reg[2][4][4];
    const int right = 2 * (warp % (D / 32));
    multiply_transpose<Bc>(dq_reg, ds_smem + tile % 2 * Bc * 64, warp / (D / 32), k_smem, right, right + 1);
    add_dq<S>(tensors.dq_sum, dq_reg, first_tile + tile);
  };

  float sums[S::pairs ? 1 : 2][2][D / 8][4] = {};  // dV and dK of 32 keys, or one of them
  auto &dv_reg = sums[0], &dk_reg = sums[S::pairs ? 0 : 1];

#pragma unroll 1
  for (int tile = 0; tile < tensors.q_tiles; tile++) {
    const bool last_of_head = i0 + Br >= p.seq_q;
    const int next_i0 = last_of_head ? 0 : i0 + Br;
    q_row += last_of_head ? p.seq_q - i0 : Br;
    cp_async_wait<0>();
    // This stage (and K and V) and dS of the tile before are in shared memory, and everyone is done with the stage
    // before and with dS of the tile before that.
    __syncthreads();
    copy_stage(tile + 1, next_i0, q_row);

    if (makes_ds && tile > 0) make_dq(tile - 1);
    const auto multiply = [&]<Role role>() {
      const T* q_tile = q_smem + tile % 2 * 2 * Br * D;
      multiply_tile<S, role>(p, dv_reg, dk_reg, k_smem + own * 64, v_smem + own * 64, q_tile, q_tile + Br * D,
                             stats_smem + tile % 2 * 2 * Br, ds_smem + (tile % 2 * Bc + own) * 64, i0, j0 + own, pair);
    };
    if constexpr (!S::pairs)
      multiply.template operator()<Role::all>();
    else if (makes_p)
      multiply.template operator()<Role::p_and_dv>();
    else
      multiply.template operator()<Role::ds_and_dk>();
    if (!makes_ds && tile > 0) make_dq(tile - 1);
    if (S::pairs) {
      // The warp that took P^T has it. The barrier of the block that comes next would do; but compute-sanitizer's
      // racecheck takes threads to be in step only if they have waited at the same number of barriers.
      if (makes_ds)
        named_barrier_arrive(1 + S::key_warps + pair, 64);  // for racecheck alone
      else
        named_barrier_sync(1 + S::key_warps + pair, 64);  // for racecheck alone
    }
    i0 = next_i0;
  }
  __syncthreads();  // dS of the last tile is in shared memory
  make_dq(tensors.q_tiles - 1);
  __syncthreads();  // everyone is done with K and V

  const size_t to = size_t(kv_row + own) * D;
  if (makes_p) store_rows<Bc, D>(tensors.dv + to, v_smem + own * 64, dv_reg, 1, p.seq_k - j0 - own);
  if (makes_ds) store_rows<Bc, D>(tensors.dk + to, k_smem + own * 64, dk_reg, p.scale, p.seq_k - j0 - own);
}

// A thread has rows g and g + 8 of one fragment of dQ, 8 columns each: those of four lanes.
template <class T, class S>
__global__ void convert(Problem p,
                        const float4* dq_sum,  // [B * H * tiles][warps][2][4][8 g][4 t]
                        T* dq)                 // [B, H, Nq, D]
{
  constexpr int D = S::D;
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x;
  const int g = thread % 8, n = thread / 8 % 4, b = thread / 32 % 2, warp = thread / 64 % S::warps;
  const unsigned tile = thread / 64 / S::warps, head_tiles = tiles(p.seq_q, S::Br), head = tile / head_tiles;
  const int i = tile % head_tiles * S::Br + warp / (D / 32) * 32 + b * 16 + g;
  Pack8<T> rows[2];
  for (int t = 0; t < 4; t++) {
    const float4 c = dq_sum[size_t(thread) * 4 + t];
    rows[0].x[2 * t] = from_float<T>(c.x * p.scale);
    rows[0].x[2 * t + 1] = from_float<T>(c.y * p.scale);
    rows[1].x[2 * t] = from_float<T>(c.z * p.scale);
    rows[1].x[2 * t + 1] = from_float<T>(c.w * p.scale);
  }
  T* to = dq + (size_t(head) * p.seq_q + i) * D + warp % (D / 32) * 32 + n * 8;
  for (int h = 0; h < 2; h++)
    if (i + 8 * h < p.seq_q) store_pack8(to + 8 * h * D, rows[h]);
}

template <class T, class S>
void launch_backward(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  const int group = p.heads / p.kv_heads, head_tiles = tiles(p.seq_q, S::Br), kv_tiles = tiles(p.seq_k, S::Bc);
  const unsigned q_tiles = unsigned(p.batch) * p.heads * head_tiles;
  const unsigned row_blocks = q_tiles * (S::Br * S::D / 8 / S::threads);  // of threads that take 8 elements each
  float* dq_sum = static_cast<float*>(args.workspace);
  float* stats = dq_sum + size_t(q_tiles) * S::Br * S::D;
  const T *o = static_cast<const T*>(args.o), *d_o = static_cast<const T*>(args.d_o);
  const Tensors<T> tensors = {.q = static_cast<const T*>(args.q),
                              .k = static_cast<const T*>(args.k),
                              .v = static_cast<const T*>(args.v),
                              .d_o = d_o,
                              .stats = stats,
                              .dq_sum = dq_sum,
                              .dk = static_cast<T*>(args.dk),
                              .dv = static_cast<T*>(args.dv),
                              .kv_tiles = kv_tiles,
                              .q_tiles = group * head_tiles,
                              .q_rows = group * p.seq_q};
  const unsigned blocks = unsigned(p.batch) * p.kv_heads * kv_tiles;
  launch(prepare<T, S>, {row_blocks, S::threads, 0, stream}, p, o, args.lse, d_o, stats,
         reinterpret_cast<float4*>(dq_sum));
  launch(gradients<T, S>, {blocks, S::threads, S::shared_bytes, stream}, p, tensors);
  launch(convert<T, S>, {row_blocks / 2, S::threads, 0, stream}, p, reinterpret_cast<const float4*>(dq_sum),
         static_cast<T*>(args.dq));
}

bool device_has(size_t shared_bytes) {
  int device = 0, most = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return shared_bytes <= size_t(most);
}

template <class T>
void run_as(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  if (p.head_dim == 64)
    launch_backward<T, Shape64>(p, args, stream);
  else if (p.seq_k > SmallShape128::Bc && device_has(Shape128::shared_bytes))
    launch_backward<T, Shape128>(p, args, stream);
  else
    launch_backward<T, SmallShape128>(p, args, stream);
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  (p.dtype == DType::fp16 ? run_as<__half> : run_as<__nv_bfloat16>)(p, args, stream);
}

// For tiles of 64 queries; those of 32 take no more.
size_t workspace_bytes(const Problem& p) {
  const size_t q_tiles = size_t(p.batch) * p.heads * tiles(p.seq_q, 64);
  return q_tiles * (64 * p.head_dim + 2 * 64) * sizeof(float);  // dq_sum, stats
}

}  // namespace

extern const attention::Rung atomic;
constinit const attention::Rung atomic = {
    .name = "atomic",
    .idea = "one loop and five products: the parts of dQ meet in memory, by atomic additions",
    .backward = {.unsupported = attention::head_dim_not_64_or_128,
                 .workspace_bytes = workspace_bytes,
                 .run = run,
                 .deterministic = false}};

}  // namespace backward
