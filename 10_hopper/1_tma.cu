// Chapter 10, rung 1, tma: one thread starts the copy of a whole tile.
//
// A thread block of four warps owns Br = 128 query rows of one head. Each warp carries 32 of them from Q to O,
// alone: two blocks b = 0, 1 of 16, the height of an mma. Keys come in stages of one or two tiles of Bc, double
// buffered. For each tile:
//
//   0. one thread starts the copy of a stage of keys, a stage ahead; all wait for the bytes of the present one
//   1. S = Q K^T                              32 x Bc a warp, in registers
//   2. x = scale log2(e) S - m                -inf where hidden; if no x > headroom (a warp vote), that is all;
//                                             otherwise m rises until the largest is `start`, and l and O follow
//   3. P = 2^x   l = l + rowsum P   O = O + P V
//
// and at the end O / l and LSE = ln(2) (m + log2(l)).
//
// What changed since chapter 08's 3_balanced: Q, K and V come by bulk tensor copies. A tensor map, made on the host for
// each launch, says where a tile lies, what is beyond the last row (zeros), and that it is to be swizzled; so nobody
// computes addresses, and no instruction is spent on a row. An mbarrier counts the bytes that have come. All wait for
// it, and no longer for their own copies.
//
// Expected limit: as in chapter 08, latency at two or three warps a scheduler: copies were hidden before.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/lazy_softmax.h"
#include "device/ldmatrix.h"
#include "device/math.h"
#include "device/mbarrier.h"
#include "device/mma.h"
#include "device/numeric.h"
#include "device/swizzle.h"
#include "device/tensor_map.h"
#include "device/watch.h"

namespace hopper {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using lazy_softmax::headroom;  // the threshold of rescaling
using lazy_softmax::start;     // x of the row maximum when m is set
using swizzled_tile::page_row;
using swizzled_tile::position;
using swizzled_tile::right_of;  // the XOR swizzle, 16 columns a step

constexpr int warps = 4, threads = 32 * warps;
constexpr int Br = 32 * warps;  // query rows of a thread block, 32 to a warp: two blocks of 16, the height of an mma

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

template <class T, int D>
struct Shared {
  static constexpr int stage = Shape<D>::stage;
  T q[Br * D];              // each tile in D / 64 pages of 128 bytes a row, swizzled; later O
  T kv[2 * 2 * stage * D];  // two stages of K and V
  Mbarrier q_full, full[2];
};

// Starts the copies of a stage of K and V, the keys from j on. One thread.
template <class T, int D>
__device__ void load(Shared<T, D>& smem, const TensorMap& k_map, const TensorMap& v_map, int kv_head, int j) {
  constexpr int stage = Shape<D>::stage;
  T* to = smem.kv + j / stage % 2 * 2 * stage * D;
  Mbarrier* full = &smem.full[j / stage % 2];
  mbarrier_arrive_expect_tx(full, 2 * stage * D * sizeof(T));
  tensor_load(to, k_map, full, 0, j, 0, kv_head);
  tensor_load(to + stage * D, v_map, full, 0, j, 0, kv_head);
}

template <class T, int D>
__global__ void __launch_bounds__(threads, Shape<D>::blocks)
    forward(const __grid_constant__ TensorMap q_map,  // of Q [B * H, D / 64, Nq, 64], in boxes of Br rows
            const __grid_constant__ TensorMap k_map,  // of K [B * Hkv, D / 64, Nk, 64], in boxes of a stage
            const __grid_constant__ TensorMap v_map,  // of V, likewise
            Problem p, int group_heads,
            T* o,        // [B, H, Nq, D]
            float* lse)  // [B, H, Nq]
{
  constexpr int Bc = Shape<D>::Bc, stage = Shape<D>::stage, q_steps = Shape<D>::q_steps;
  Shared<T, D>& smem = *dynamic_shared<Shared<T, D>, tile_alignment>();
  T *q_smem = smem.q, *kv_smem = smem.kv;

  // The block's head and rows: one group of heads after the other, and in each the last rows of every head first.
  const int row_tiles = (p.seq_q + Br - 1) / Br;
  const int first_head = blockIdx.x / (group_heads * row_tiles) * group_heads;
  const int index = blockIdx.x - first_head * row_tiles;
  const int heads = min(group_heads, p.batch * p.heads - first_head);  // of this group: the last may be smaller
  const int head = first_head + index % heads, i0 = (row_tiles - 1 - index / heads) * Br;
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // of lane 0, so the compiler knows that all agree
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const unsigned q_row = head * p.seq_q + i0;    // the first, over all heads
  const int keys = p.visible_keys(i0 + Br - 1);  // that any row of the block sees: the last one sees most
  const int warp_first = p.visible_keys(i0 + warp * 32), warp_last = p.visible_keys(i0 + warp * 32 + 31);
  const float scale_log2 = p.scale * log2_e;

  if (threadIdx.x == 0) {
    mbarrier_init(&smem.q_full, 1);
    for (int i = 0; i < 2; i++) mbarrier_init(&smem.full[i], 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&smem.q_full, Br * D * sizeof(T));
    tensor_load(q_smem, q_map, &smem.q_full, 0, i0, 0, head);
    if (keys > 0) load(smem, k_map, v_map, p.kv_head(head), 0);
  }
  __syncthreads();  // the mbarriers are there

  // The row of a 16 x 16 block whose address this lane gives to ldmatrix (drawn in device/swizzle.h).
  const int qv_lane = position<16>(lane % 16, lane / 16);                   // Q and V: down, then right
  const int k_lane = position<16>(lane / 16 * 8 + lane % 8, lane / 8 % 2);  // K: right, then down
  const int q_lane = warp * 32 * page_row + qv_lane;

  mbarrier_wait(&smem.q_full, 0);

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
      __syncthreads();  // everyone is done with the stage before, whose place the next one takes
      // exercise parity: start copying the next `stage` of keys, if any, to the other place; wait for those from j0 on
      if (threadIdx.x == 0 && j0 + stage < keys) load(smem, k_map, v_map, p.kv_head(head), j0 + stage);
      mbarrier_wait(&smem.full[j0 / stage % 2], j0 / stage / 2 % 2);
      // end parity |
    }
    const int tile = j0 / stage % 2 * 2 * stage * D + j0 % stage * page_row;  // where its page 0 of K starts in kv_smem
    if (Shape<D>::leave_out && j0 >= warp_last) continue;  // a tile that only other warps have to compute

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
    constexpr int stage = Shape<D>::stage;
    const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
    const unsigned blocks = heads * ceil_div(p.seq_q, Br);
    launch(forward<T, D>, {blocks, threads, sizeof(Shared<T, D>), stream}, tile_map<D>(q, heads, p.seq_q, Br),
           tile_map<D>(k, kv_heads, p.seq_k, stage), tile_map<D>(v, kv_heads, p.seq_k, stage), p,
           attention::heads_in_a_round(p), o, args.lse);
  });
}

constexpr attention::Forward unpadded = {attention::not_for_hopper, attention::no_workspace, run, true};

}  // namespace

extern const attention::Rung tma;
constinit const attention::Rung tma = {
    .name = "tma",
    .idea = "one thread starts the copy of a whole tile, and an mbarrier counts the bytes that have come",
    .forward = attention::padded<unpadded>};

}  // namespace hopper
