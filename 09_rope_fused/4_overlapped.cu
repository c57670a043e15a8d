// Chapter 09, rung 4, overlapped: the attention kernel starts while the rotation of K is ending.
//
// rotate:   a thread takes 8 pairs of a row of K, elements i ... i + 7 and their partners D/2 further on, and writes
//           them, rotated, to the workspace.
// forward:  chapter 08's last kernel, on the workspace's K; before the first product, Q is rotated in shared memory.
//
// What changed since 3_prerotated: forward is a dependent launch. When rotate's last block has ended, forward's first
// blocks may be there already, and have asked for Q and V, which need nothing from rotate, before they wait for K.
//
// Expected limit: as before. What is saved is part of a launch, a microsecond or two, whatever N is.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "attention/schedule.h"
#include "device/cp_async.h"
#include "device/dependent_launch.h"
#include "device/forward_tile.h"
#include "device/lazy_softmax.h"
#include "device/ldmatrix.h"
#include "device/math.h"
#include "device/mma.h"
#include "device/numeric.h"
#include "device/rope_angles.h"
#include "device/swizzle.h"
#include "device/watch.h"

namespace rope_fused {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using attention::RopeTables;
using namespace rope_angles;
using forward_tile::copy_ahead;
using forward_tile::copy_tile;
using lazy_softmax::headroom;  // the threshold of rescaling
using lazy_softmax::start;     // x of the row maximum when m is set
using swizzled_tile::page_row;
using swizzled_tile::position;
using swizzled_tile::right_of;  // the XOR swizzle, 16 columns a step

constexpr int warps = 4, threads = 32 * warps;
constexpr int Br = 32 * warps;  // query rows of a thread block, 32 to a warp: two blocks of 16, the height of an mma

constexpr int rotate_threads = 256;

template <class T, int D>
__global__ void rotate(Problem p, RopeTables rope,
                       const T* k,    // [B, Hkv, Nk, D]
                       T* k_rotated)  // [B, Hkv, Nk, D]
{
  constexpr int threads_per_row = D / 16;
  const size_t index = blockIdx.x * size_t(rotate_threads) + threadIdx.x, row = index / threads_per_row;
  const int i = index % threads_per_row * 8;
  if (row >= size_t(p.batch) * p.kv_heads * p.seq_k) return;
  watch_step("a piece of K, turned");
  Pack8<T> x1 = load_pack8(k + row * D + i), x2 = load_pack8(k + row * D + i + D / 2);
  turn(x1, x2, angles_of<D>(rope, row % p.seq_k, i));
  store_pack8(k_rotated + row * D + i, x1);
  store_pack8(k_rotated + row * D + i + D / 2, x2);
}

template <int D>
struct Shape;
template <>
struct Shape<128> {
  static constexpr int blocks = 2;         // per multiprocessor: 256 registers a thread, of which O takes 128
  static constexpr int Bc = 64;            // keys in a tile: 64 registers for S
  static constexpr int stage = 64;         // keys per barrier: Q and two stages of K and V are 96 KB a block
  static constexpr int q_steps = 0;        // of the D / 16 steps of Q K^T, those whose Q stays in registers
  static constexpr bool leave_out = true;  // tiles above a warp's diagonal
};
template <>
struct Shape<64> {
  static constexpr int blocks = 3;          // 168 registers, of which O takes 64
  static constexpr int Bc = 32;             // 32 registers for S
  static constexpr int stage = 64;          // 48 KB a block
  static constexpr int q_steps = 3;         // 24 registers; with the fourth step chapter 08's kernels spill for sm_80
  static constexpr bool leave_out = false;  // asking for every 32 keys costs more than it saves
};

// Rotates the block's rows of Q where cp.async brings them, in shared memory, between two barriers. At D = 64 four
// lanes take a row, and the next four the row 4 below, whose chunks are in the other half of the banks. Rows that do
// not exist are zeros, which stay zeros.
template <class T, int D>
__device__ void rotate_q(const Problem& p, const RopeTables& rope, int i0,
                         T* tile)  // [Br][D] in shared memory, swizzled; the last group of copies but one
{
  constexpr int apart = threads / (D / 16);  // rows that the thread block rotates at a time
  constexpr int at_once = D == 64 ? 2 : 4;   // with 4 nvcc finds another order for the main loop
  const int chunk = threadIdx.x % (D / 16), octet = threadIdx.x / 8;
  const int first = D == 64 ? octet / 4 * 8 + threadIdx.x / 4 % 2 * 4 + octet % 4 : octet;
#pragma unroll 1
  for (int row0 = first; row0 < Br; row0 += at_once * apart) {
    Angles angles[at_once];  // the first on their way before the wait
#pragma unroll
    for (int i = 0; i < at_once; i++) {
      const int row = min(i0 + row0 + i * apart, p.seq_q - 1);
      angles[i] = angles_of<D>(rope, p.query_position(row), chunk * 8);
    }
    if (row0 == first) {
      cp_async_wait<1>();
      __syncthreads();  // all threads' copies of Q have arrived
    }
#pragma unroll
    for (int i = 0; i < at_once; i++) {
      T* const at1 = tile + position<Br>(row0 + i * apart, chunk);
      T* const at2 = tile + position<Br>(row0 + i * apart, chunk + D / 16);
      Pack8<T> x1 = load_pack8(at1), x2 = load_pack8(at2);
      turn(x1, x2, angles[i]);
      store_pack8(at1, x1);
      store_pack8(at2, x2);
    }
  }
  __syncthreads();  // all threads have rotated: before Q is read, or, if keys = 0, O written over it
}

template <class T, int D>
__global__ void __launch_bounds__(threads, Shape<D>::blocks) forward(Problem p, RopeTables rope, int round_heads,
                                                                     const T* q,  // [B, H, Nq, D]
                                                                     const T* k,  // [B, Hkv, Nk, D]
                                                                     const T* v,  // [B, Hkv, Nk, D]
                                                                     T* o,        // [B, H, Nq, D]
                                                                     float* lse)  // [B, H, Nq]
{
  constexpr int Bc = Shape<D>::Bc, stage = Shape<D>::stage, q_steps = Shape<D>::q_steps;
  T* q_smem = dynamic_shared<T>();  // [Br][D]
  T* kv_smem = q_smem + Br * D;     // [2 stages][K and V][stage][D]

  // The block's head and rows: one round of heads after the other, and in each the last rows of every head first.
  const int row_tiles = (p.seq_q + Br - 1) / Br;
  const int first_head = blockIdx.x / (round_heads * row_tiles) * round_heads;
  const int index = blockIdx.x - first_head * row_tiles;
  const int heads = min(round_heads, p.batch * p.heads - first_head);  // of this round: the last may be smaller
  const int head = first_head + index % heads, i0 = (row_tiles - 1 - index / heads) * Br;
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // of lane 0, so the compiler knows that all agree
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const unsigned q_row = head * p.seq_q + i0, kv_row = p.kv_head(head) * p.seq_k;  // the first, over all heads
  const int keys = p.visible_keys(i0 + Br - 1);  // that any row of the block sees: the last one sees most
  const int warp_first = p.visible_keys(i0 + warp * 32), warp_last = p.visible_keys(i0 + warp * 32 + 31);
  const float scale_log2 = p.scale * log2_e;

  copy_tile<D, Br>(q_smem, q + size_t(q_row) * D, p.seq_q - i0);
  cp_async_commit();
  copy_tile<D, stage>(kv_smem + stage * D, v + size_t(kv_row) * D, keys);
  grid_dependency_wait();  // rotate has ended, and what it wrote can be read
  copy_tile<D, stage>(kv_smem, k + size_t(kv_row) * D, keys);
  cp_async_commit();

  // The row of a 16 x 16 block whose address this lane gives to ldmatrix (drawn in device/swizzle.h).
  const int qv_lane = position<16>(lane % 16, lane / 16);                   // Q and V: down, then right
  const int k_lane = position<16>(lane / 16 * 8 + lane % 8, lane / 8 % 2);  // K: right, then down
  const int q_lane = warp * 32 * page_row + qv_lane;

  rotate_q<T, D>(p, rope, i0, q_smem);

  uint32_t q_reg[q_steps > 0 ? q_steps : 1][2][4];
#pragma unroll
  for (int step = 0; step < q_steps; step++)
    for (int b = 0; b < 2; b++) ldmatrix_x4(q_reg[step][b], q_smem + right_of<Br>(q_lane, step) + b * 16 * page_row);

  float o_reg[2][D / 8][4] = {};
  // Of rows 16 b + 8 h + g: m, and -l, which is inf until m is set. l only over this lane's columns, until the end.
  float m[2][2] = {}, minus_l[2][2] = {{INFINITY, INFINITY}, {INFINITY, INFINITY}};
  const Watched state = {q_row + warp * 32, 0, p.seq_q - i0 - warp * 32, D};

#pragma unroll 1
  for (int j0 = 0; j0 < keys; j0 += Bc) {
    if (j0 % stage == 0) {
      cp_async_wait<0>();
      __syncthreads();  // this stage is in shared memory, and everyone is done with the stage before
    }
    const int tile = j0 / stage % 2 * 2 * stage * D + j0 % stage * page_row;  // where its page 0 of K starts in kv_smem

    // Only other warps have to compute this tile, but this warp must start its share of the copies. (Two calls, so
    // that no branch comes between copies and products.)
    if (Shape<D>::leave_out && j0 >= warp_last) {
      copy_ahead<D, Bc, stage>(kv_smem + (tile ^ 2 * stage * D), k, v, kv_row, j0 + stage, keys);
      continue;
    }
    copy_ahead<D, Bc, stage>(kv_smem + (tile ^ 2 * stage * D), k, v, kv_row, j0 + stage, keys);

    watch_step("1. S = Q K^T");
    float s_reg[2][Bc / 8][4] = {};
#pragma unroll
    for (int step = 0; step < D / 16; step++) {
      uint32_t q_step[2][4];
      for (int b = 0; b < 2; b++)
        if (step < q_steps)
          for (int r = 0; r < 4; r++) q_step[b][r] = q_reg[step < q_steps ? step : 0][b][r];
        else
          ldmatrix_x4(q_step[b], q_smem + right_of<Br>(q_lane, step) + b * 16 * page_row);
#pragma unroll
      for (int n = 0; n < Bc / 16; n++) {
        uint32_t k_reg[4];  // K^T of 16 keys: two B fragments
        ldmatrix_x4(k_reg, kv_smem + right_of<stage>(tile + k_lane, step) + n * 16 * page_row);
        for (int b = 0; b < 2; b++) {
          mma_m16n8k16<T>(s_reg[b][2 * n], q_step[b], k_reg);
          mma_m16n8k16<T>(s_reg[b][2 * n + 1], q_step[b], k_reg + 2);
        }
      }
    }

    const Watched scores = {state.row, j0, state.rows, p.seq_k - j0};
    watch("S", scores, s_reg, p.scale);

    watch_step("2. x = S - m; m rises only if it must, then O *= correction");
    // x, in place of S, and the largest of all x and -l. -l is inf while a row has no m, and below 0 later. From
    // 0 up, floats are in the order of their bits, and the largest of three integers is a single instruction of sm_90.
    int largest[2][2];  // four, because a chain of 64 would take as long as the exp2
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int h = 0; h < 2; h++) {
        largest[b][h] = __float_as_int(minus_l[b][h]);
        for (int n = 0; n < Bc / 8; n++) {
          float* x = s_reg[b][n] + 2 * h;
          for (int c = 0; c < 2; c++) x[c] = fmaf(x[c], scale_log2, -m[b][h]);
          largest[b][h] = max(max(largest[b][h], __float_as_int(x[0])), __float_as_int(x[1]));
        }
      }
    const int top_bits = max(max(largest[0][0], largest[0][1]), max(largest[1][0], largest[1][1]));
    const bool above = __any_sync(0xffffffff, top_bits > __float_as_int(headroom));  // hidden ones too
    if (j0 + Bc > warp_first) {  // across the diagonal, or the end of the keys
#pragma unroll
      for (int b = 0; b < 2; b++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int visible = p.visible_keys(i0 + warp * 32 + 16 * b + 8 * h + g) - j0 - 2 * t;
          for (int n = 0; n < Bc / 8; n++)
            for (int c = 0; c < 2; c++)
              if (8 * n + c >= visible) s_reg[b][n][2 * h + c] = -INFINITY;
        }
    }
    if (above) {
#pragma unroll
      for (int b = 0; b < 2; b++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          float top = -INFINITY;  // the row maximum
          for (int n = 0; n < Bc / 8; n++) top = fmaxf(top, fmaxf(s_reg[b][n][2 * h], s_reg[b][n][2 * h + 1]));
          top = quad_max(top);
          const bool sets = minus_l[b][h] > 0 && top > -INFINITY;  // m for the first time, up or down
          const float rise = sets || top > headroom ? top - start : 0;
          const float correction = rise > 0 ? exp2_approx(-rise) : 1;
          watch("correction", state, 16 * b + 8 * h + g, 0, correction);
          m[b][h] += rise;
          minus_l[b][h] = sets ? 0 : minus_l[b][h] * correction;
          for (int n = 0; n < Bc / 8; n++)
            for (int c = 0; c < 2; c++) s_reg[b][n][2 * h + c] -= rise;
          for (int n = 0; n < D / 8; n++)
            for (int c = 0; c < 2; c++) o_reg[b][n][2 * h + c] *= correction;
        }
    }

    watch_step("3. P, and O += P V");
    // 16 keys at a time: two C fragments of S, side by side, are an A fragment of P
#pragma unroll
    for (int step = 0; step < Bc / 16; step++) {
      uint32_t p_reg[2][4];
      for (int b = 0; b < 2; b++)
        for (int r = 0; r < 4; r++) {
          const float* x = s_reg[b][2 * step + r / 2] + r % 2 * 2;
          const float p0 = exp2_approx(x[0]), p1 = exp2_approx(x[1]);
          minus_l[b][r % 2] -= p0 + p1;
          p_reg[b][r] = pack2<T>(p0, p1);
          watch_pair("P", scores, b, step, r, p0, p1);
        }
#pragma unroll
      for (int n = 0; n < D / 16; n++) {
        uint32_t v_reg[4];  // V of 16 columns: two B fragments
        ldmatrix_x4_trans(v_reg, kv_smem + stage * D + right_of<stage>(tile + qv_lane, n) + step * 16 * page_row);
        for (int b = 0; b < 2; b++) {
          mma_m16n8k16<T>(o_reg[b][2 * n], p_reg[b], v_reg);
          mma_m16n8k16<T>(o_reg[b][2 * n + 1], p_reg[b], v_reg + 2);
        }
      }
    }
    watch_rows("m base 2", state, m);
    watch_row_shares("-l", state, minus_l);
    watch("O", state, o_reg);
  }
  cp_async_wait<0>();  // no copy may outlive the thread block

  watch_step("O / l and LSE");
  // O through shared memory, in the rows of Q that no other warp reads, so that it leaves in whole rows.
  __syncwarp();  // all lanes are done with Q
#pragma unroll
  for (int b = 0; b < 2; b++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = warp * 32 + 16 * b + 8 * h + g;
      const float minus_sum = quad_sum(minus_l[b][h]), l_row = minus_sum > 0 ? 0 : -minus_sum;
      const float inverse = l_row > 0 ? 1 / l_row : 0;  // l = 0: the row sees no key
      if (t == 0 && i0 + row < p.seq_q) lse[q_row + row] = (m[b][h] + log2_approx(l_row)) * ln_2;
      for (int n = 0; n < D / 8; n++)
        *reinterpret_cast<uint32_t*>(q_smem + position<Br>(row, n) + 2 * t) =
            pack2<T>(o_reg[b][n][2 * h] * inverse, o_reg[b][n][2 * h + 1] * inverse);
    }
  __syncwarp();  // the warp's 32 rows of O are in shared memory
#pragma unroll
  for (int i = lane; i < 32 * D / 8; i += 32) {
    const int row = warp * 32 + i / (D / 8), chunk = i % (D / 8);
    if (i0 + row < p.seq_q)
      store_pack8(o + size_t(q_row + row) * D + chunk * 8, load_pack8(q_smem + position<Br>(row, chunk)));
  }
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    T* const k_rotated = static_cast<T*>(args.workspace);
    const size_t rotations = p.kv_size() / 16;  // of eight pairs
    launch(rotate<T, D>, {unsigned(ceil_div(rotations, rotate_threads)), rotate_threads, 0, stream}, p, args.rope, k,
           k_rotated);

    const unsigned blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, Br);
    const size_t shared_bytes = (Br + 4 * Shape<D>::stage) * D * sizeof(T);
    launch_dependent(forward<T, D>, {blocks, threads, shared_bytes, stream}, p, args.rope,
                     attention::heads_in_a_round(p), q, k_rotated, v, o, args.lse);
  });
}

constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128,
                                         [](const Problem& p) { return p.kv_size() * 2; },  // K, rotated
                                         run, true};

}  // namespace

extern const attention::Rung overlapped;
constinit const attention::Rung overlapped = {
    .name = "overlapped",
    .idea = "attention starts while the rotation of K is ending, with what needs nothing from it",
    .forward = attention::padded<unpadded>};

}  // namespace rope_fused
