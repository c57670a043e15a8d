// Chapter 08, rung 2, earlystop, backward: queries that see none of a block's keys do not pass by.
//
//   prepare    a few lanes per query row: log2(e) LSE and D = rowsum(dO o O); and zeros where dQ will be added up
//   gradients  a thread block owns Bc rows of K and V and their gradients; Q and dO pass by in tiles of Br rows, of all
//              query heads that read this kv head, in each from the diagonal on
//   convert    dQ from its fp32 sum to the storage type
//
// Each of a block's rows belongs to one warp or one pair of warps, 32 rows to each. For each tile that passes by:
//
//   S^T = K Q^T      P^T = 2^(S^T - LSE)        dV += P^T dO       32 x Br, P^T from registers
//   dP^T = V dO^T    dS^T = P^T o (dP^T - D)    dK += dS^T Q       likewise; dS^T also goes to shared memory
//   dQ of the tile before = dS K                                   32 x 32 of it a warp, added to other blocks' parts
//
// At D = 64 a warp does all of it, at D = 128 a pair shares it, as in chapter 07: P^T travels through shared memory.
//
// What changed since chapter 07, 7_atomic (which is this chapter's `masked`; what it taught is
// device/backward_pairs.h's): where the tiles of a head begin. Under the mask a key is seen by the queries from the
// diagonal on, to the last; so nothing is left out at the end, and every block has a tile to compute. Whether a warp's
// part of a tile needs the mask it has always asked: on the diagonal, and past the last key, yes; everywhere else no
// mask code runs.
//
// Expected limit: the tail. Blocks of the first keys have all queries to look at, those of the last keys next to none,
// and a head's blocks start with the long ones, but the last head's start last of all.
#include <cmath>
#include <cstdint>

#include "attention/padded.h"
#include "device/atomic_add.h"
#include "device/backward_pairs.h"

namespace causal_earlystop {
namespace {

using attention::BackwardArgs;
using attention::DType;
using attention::Problem;
using namespace backward_pairs;

template <class T>
struct Tensors {
  const T* q;           // [B, H, Nq, D]
  const T* k;           // [B, Hkv, Nk, D]
  const T* v;           // [B, Hkv, Nk, D]
  const T* d_o;         // [B, H, Nq, D]
  const float* stats;   // [B * H * tiles][2][Br], of LSE, then of D
  float* dq_sum;        // [B * H * tiles][warps][8][32][4]: fragments (2 x 4 of 16 x 8) of 32 lanes
  T* dk;                // [B, Hkv, Nk, D]
  T* dv;                // [B, Hkv, Nk, D]
  int kv_tiles;         // tiles of a kv head
  int q_tiles, q_rows;  // tiles and rows of all query heads that read one kv head
};

__host__ __device__ int tiles(int rows, int tile_rows) { return (rows + tile_rows - 1) / tile_rows; }

// The first tile of a head's queries that a block with keys j0 and up computes: one that sees them, or the one before.
// An even one, so that `tile % 2` goes on telling the stages of a pipeline apart when the next head's tiles follow.
template <class S>
__device__ int first_seeing(const Problem& p, int j0) {
  return p.first_query(j0) / (2 * S::Br) * 2;
}

// Adds the warp's part of dQ of tile `tile`, counted over all heads.
template <class S>
__device__ void add_dq(float* dq_sum,  // [B * H * tiles][warps][8][32][4]
                       const float (&dq_reg)[2][4][4], size_t tile) {
  float* sum = dq_sum + (tile * S::threads + threadIdx.x / 32 * 32) * 32 + threadIdx.x % 32 * 4;
#pragma unroll
  for (int b = 0; b < 2; b++)
    for (int n = 0; n < 4; n++) atomic_add_4(sum + (b * 4 + n) * 32 * 4, dq_reg[b][n]);
}

template <class T, class S>
__global__ void __launch_bounds__(S::threads, S::blocks) gradients(Problem p, Tensors<T> tensors) {
  constexpr int D = S::D, Bc = S::Bc, Br = S::Br;
  T* k_smem = dynamic_shared<T>();       // [Bc][D]
  T* v_smem = k_smem + Bc * D;           // [Bc][D]
  T* q_smem = v_smem + Bc * D;           // [2 stages][Q and dO][Br][D]
  T* ds_smem = q_smem + 2 * 2 * Br * D;  // [2 stages][Bc][64], dS^T; of a pair, P^T before it
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
      multiply_tile<S, role>(dv_reg, dk_reg, k_smem + own * 64, v_smem + own * 64, q_tile, q_tile + Br * D,
                             stats_smem + tile % 2 * 2 * Br, ds_smem + tile % 2 * S::ds_stage + own * 64, p.scale,
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
    if (S::pairs) {
      // The warp that took P^T has it. The barrier of the block that comes next would do; but compute-sanitizer's
      // racecheck takes threads to be in step only if they have waited at the same number of barriers.
      if (makes_ds)
        named_barrier_arrive(1 + S::key_warps + pair, 64);  // for racecheck alone
      else
        named_barrier_sync(1 + S::key_warps + pair, 64);  // for racecheck alone
    }
    i0 = next_i0;
    before = tile;
    tile = next;
  }
  __syncthreads();  // dS of the last tile is in shared memory
  make_dq(end - 1);
  __syncthreads();  // everyone is done with K and V

  const size_t to = size_t(kv_row + own) * D;
  if (makes_p) store_rows<Bc, D>(tensors.dv + to, v_smem + own * 64, dv_reg, 1 / p_factor, p.seq_k - j0 - own);
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

constexpr attention::Backward unpadded = {.unsupported = attention::head_dim_not_8_to_128,
                                          .workspace_bytes = workspace_bytes,
                                          .run = run,
                                          .deterministic = false};

}  // namespace

extern const attention::Backward earlystop_backward;
constinit const attention::Backward earlystop_backward = attention::padded<unpadded>;

}  // namespace causal_earlystop
