// Chapter 06, rung 11, final: at D = 64 three of the four steps of Q stay in registers.
//
// A thread block of four warps owns Br = 128 query rows of one head. Each warp carries 32 of them from Q to O,
// alone: two blocks b = 0, 1 of 16, the height of an mma. Keys come in stages of one or two tiles of Bc, double
// buffered. For each tile:
//
//   0. the copy of one tile of the next stage starts
//   1. S = Q K^T                              32 x Bc a warp, in registers
//   2. x = scale log2(e) S - m                if no x > headroom (a warp vote), nothing else; otherwise
//                                             m rises until the row's largest x is `start`, and l and O follow
//   3. P = 2^x   l = l + rowsum P   O = O + P V
//
// and at the end O / l, by way of shared memory, and LSE = ln(2) (m + log2(l)).
//
// What changed since 10_two_tiles: the copies of Q are a group of their own. At D = 64 a warp waits for Q first, loads
// the fragments of three of its four steps once, before the loop, and keeps them in 24 registers that were free. That
// saves 12 of 48 ldmatrix for every 64 keys.
//
// Expected limit: no single unit. Tensor cores are busy less than two thirds of the time, and shared memory less than
// that. A scheduler has two or three warps, and often none of them has its operands yet. Predicted: 1.02 times as fast
// as two_tiles at D = 64, N = 4096, without a mask.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/cp_async.h"
#include "device/ldmatrix.h"
#include "device/math.h"
#include "device/mma.h"
#include "device/numeric.h"
#include "device/swizzle.h"
#include "device/watch.h"

namespace flashattn2_fwd {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using swizzled_tile::position;
using swizzled_tile::right_of;  // the XOR swizzle, 16 columns a step

constexpr int warps = 4, threads = 32 * warps;
constexpr int Br = 32 * warps;  // query rows of a thread block, 32 to a warp: two blocks of 16, the height of an mma

template <int D>
struct Shape;
template <>
struct Shape<128> {
  static constexpr int blocks = 2;   // per multiprocessor: 256 registers a thread, of which O takes 128
  static constexpr int Bc = 64;      // keys in a tile: 64 registers for S
  static constexpr int stage = 64;   // keys per barrier: Q and two stages of K and V are 96 KB a block
  static constexpr int q_steps = 0;  // of the D / 16 steps of Q K^T, those whose Q stays in registers
};
template <>
struct Shape<64> {
  static constexpr int blocks = 3;   // 168 registers, of which O takes 64
  static constexpr int Bc = 32;      // 32 registers for S
  static constexpr int stage = 64;   // 48 KB a block
  static constexpr int q_steps = 3;  // 24 registers; with the fourth step chapter 08's kernels spill for sm_80
};

// `headroom` is what FlashAttention-4 calls the threshold of rescaling: how large x may become before m rises and O is
// rescaled. `start` is the x of the row maximum when m is set. P = 2^x is 2^15 at most, and fp16 reaches 65504. Below
// 2^-14 fp16 loses bits; that is why x does not start at 0: a key that is 2^21 times lighter than the heaviest still
// has all of its bits. l and O are fp32, which is equally precise at every size.
constexpr float start = 7, headroom = 15;

template <int D>
constexpr int rows_per_copy = threads / (D / 8);  // rows of D elements that the thread block copies at a time

// Starts copying a tile to shared memory; rows that do not exist become zeros.
template <int D, int rows, class T>
__device__ void copy_tile(T* tile,        // [rows][D] in shared memory, swizzled
                          const T* from,  // [rows_left, D]
                          int rows_left) {
  const int row = threadIdx.x / (D / 8), chunk = threadIdx.x % (D / 8);
#pragma unroll 4
  for (int i = 0; i < rows; i += rows_per_copy<D>)
    cp_async_16_or_zero(tile + position<rows>(row, chunk) + i * 64, from + (row + i) * D + chunk * 8,
                        row + i < rows_left);
}

// Starts copying Bc rows of K and of V, the keys from j on, to their stage; zeros take the place of those after the
// last.
template <int D, class T>
__device__ void copy_ahead(T* to,                   // key j's place in page 0 of K; V is stage * D further on
                           const T* k, const T* v,  // [B * Hkv * Nk, D]
                           unsigned kv_row,         // where key 0 is, over all heads
                           int j, int keys) {
  constexpr int Bc = Shape<D>::Bc, stage = Shape<D>::stage;
  const int row = threadIdx.x / (D / 8), chunk = threadIdx.x % (D / 8), left = keys - (j + row);
  to += position<stage>(row, chunk);
  const size_t from = size_t(kv_row + (j + row)) * D + chunk * 8;
#pragma unroll
  for (int i = 0; i < Bc; i += rows_per_copy<D>) {
    cp_async_16_or_zero(to + i * 64, k + from + i * D, i < left);
    cp_async_16_or_zero(to + stage * D + i * 64, v + from + i * D, i < left);
  }
  cp_async_commit();
}

template <class T, int D>
__global__ void __launch_bounds__(threads, Shape<D>::blocks) forward(Problem p,
                                                                     const T* q,  // [B, H, Nq, D]
                                                                     const T* k,  // [B, Hkv, Nk, D]
                                                                     const T* v,  // [B, Hkv, Nk, D]
                                                                     T* o,        // [B, H, Nq, D]
                                                                     float* lse)  // [B, H, Nq]
{
  constexpr int Bc = Shape<D>::Bc, stage = Shape<D>::stage, q_steps = Shape<D>::q_steps;
  T* q_smem = dynamic_shared<T>();  // [Br][D]
  T* kv_smem = q_smem + Br * D;     // [2 stages][K and V][stage][D]

  const int row_tiles = (p.seq_q + Br - 1) / Br;
  const int head = blockIdx.x / row_tiles, i0 = blockIdx.x % row_tiles * Br;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const unsigned q_row = head * p.seq_q + i0, kv_row = p.kv_head(head) * p.seq_k;  // the first, over all heads
  const int seen_by_all = p.visible_keys(i0);  // keys that all rows of the block see
  const float scale_log2 = p.scale * log2_e;

  copy_tile<D, Br>(q_smem, q + size_t(q_row) * D, p.seq_q - i0);
  cp_async_commit();
  copy_tile<D, stage>(kv_smem, k + size_t(kv_row) * D, p.seq_k);
  copy_tile<D, stage>(kv_smem + stage * D, v + size_t(kv_row) * D, p.seq_k);
  cp_async_commit();

  // The row of a 16 x 16 block whose address this lane gives to ldmatrix (drawn in device/swizzle.h).
  const int qv_lane = position<16>(lane % 16, lane / 16);                   // Q and V: down, then right
  const int k_lane = position<16>(lane / 16 * 8 + lane % 8, lane / 8 % 2);  // K: right, then down

  const int q_lane = warp * 32 * 64 + qv_lane;

  uint32_t q_reg[q_steps > 0 ? q_steps : 1][2][4];
  if constexpr (q_steps > 0) {
    cp_async_wait<1>();
    __syncthreads();  // Q is in shared memory: all threads' copies have arrived
#pragma unroll
    for (int step = 0; step < q_steps; step++)
      for (int b = 0; b < 2; b++) ldmatrix_x4(q_reg[step][b], q_smem + right_of<Br>(q_lane, step) + b * 16 * 64);
  }

  float o_reg[2][D / 8][4] = {};
  // Of rows 16 b + 8 h + g: m, and -l, which is inf until m is set. l only over this lane's columns, until the end.
  float m[2][2] = {}, minus_l[2][2] = {{INFINITY, INFINITY}, {INFINITY, INFINITY}};
  const Watched state = {q_row + warp * 32, 0, p.seq_q - i0 - warp * 32, D};

#pragma unroll 1
  for (int j0 = 0; j0 < p.seq_k; j0 += Bc) {
    if (j0 % stage == 0) {
      cp_async_wait<0>();
      __syncthreads();  // this stage (and Q) is in shared memory, and everyone is done with the stage before
    }
    const int tile = j0 / stage % 2 * 2 * stage * D + j0 % stage * 64;  // where its page 0 of K starts in kv_smem

    copy_ahead<D>(kv_smem + (tile ^ 2 * stage * D), k, v, kv_row, j0 + stage, p.seq_k);

    watch_step("1. S = Q K^T");
    float s_reg[2][Bc / 8][4] = {};
#pragma unroll
    for (int step = 0; step < D / 16; step++) {
      uint32_t q_step[2][4];
      for (int b = 0; b < 2; b++)
        if (step < q_steps)
          for (int r = 0; r < 4; r++) q_step[b][r] = q_reg[step < q_steps ? step : 0][b][r];
        else
          ldmatrix_x4(q_step[b], q_smem + right_of<Br>(q_lane, step) + b * 16 * 64);
#pragma unroll
      for (int n = 0; n < Bc / 16; n++) {
        uint32_t k_reg[4];  // K^T of 16 keys: two B fragments
        ldmatrix_x4(k_reg, kv_smem + right_of<stage>(tile + k_lane, step) + n * 16 * 64);
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
    const bool masked = j0 + Bc > seen_by_all;
    const bool above = top_bits > __float_as_int(headroom);
    if (masked || __any_sync(0xffffffff, above)) {
#pragma unroll
      for (int b = 0; b < 2; b++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int visible =
              p.visible_keys(i0 + warp * 32 + 16 * b + 8 * h + g) - j0 - 2 * t;  // from this lane's first column on
          // `top`: the row's largest x in this lane's columns.
          float top = -INFINITY;
          for (int n = 0; n < Bc / 8; n++)
            for (int c = 0; c < 2; c++) {
              float& x = s_reg[b][n][2 * h + c];
              if (8 * n + c >= visible) x = -INFINITY;
              top = fmaxf(top, x);
            }
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
        ldmatrix_x4_trans(v_reg, kv_smem + stage * D + right_of<stage>(tile + qv_lane, n) + step * 16 * 64);
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
    const unsigned blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, Br);
    const size_t shared_bytes = (Br + 4 * Shape<D>::stage) * D * sizeof(T);
    launch(forward<T, D>, {blocks, threads, shared_bytes, stream}, p, q, k, v, o, args.lse);
  });
}

constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128, attention::no_workspace, run, true};

}  // namespace

extern const attention::Rung final_rung;
constinit const attention::Rung final_rung = {
    .name = "final",
    .idea = "at D = 64 three of the four steps of Q stay in registers, and are loaded once",
    .forward = attention::padded<unpadded>};

}  // namespace flashattn2_fwd
