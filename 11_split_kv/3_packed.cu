// Chapter 11, rung 3, packed: the heads that share K and V are rows of one tile.
//
// A thread block of four warps owns Br = 128 query rows of one kv head and one part of the keys. Each warp has 32 of
// the rows alone, from Q to its part of O: two blocks b = 0, 1 of 16, the height of an mma. Keys come in stages of one
// or two tiles of Bc, double buffered. For each tile of the part:
//
//   0. the copy of one tile of the next stage starts
//   1. S = Q K^T                              32 x Bc a warp, in registers
//   2. x = scale log2(e) S - m                -inf where hidden; if no x > headroom (a warp vote), that is all;
//                                             otherwise m rises until the largest is `start`, and l and O follow
//   3. P = 2^x   l = l + rowsum P   O = O + P V
//
// and at the end O / l and m + log2(l), in fp32, to the workspace. The kernel in merge.cu makes one O and LSE of them.
//
// What changed since 2_split: "head" is a kv head, and a row is one of the queries of all heads that share it.
//   - These heads are neighbours in Q, O and LSE: their rows are one matrix [group * Nq, D] as they lie in memory, and
//     K and V are read once for all of them.
//   - Row r is query r % Nq of its head. A tile may hold the end of one head and the start of the next: then one of its
//     rows sees the most keys of all rows of a head, and another the fewest.
//
// Expected limit: products of zeros. Of the 128 rows of a tile, the heads of a group fill four or eight.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/key_parts.h"
#include "attention/padded.h"
#include "device/cp_async.h"
#include "device/forward_tile.h"
#include "device/lazy_softmax.h"
#include "device/ldmatrix.h"
#include "device/math.h"
#include "device/mma.h"
#include "device/numeric.h"
#include "device/swizzle.h"
#include "device/watch.h"

namespace split_kv {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using forward_tile::copy_ahead;
using forward_tile::copy_tile;
using key_parts::group_rows;
using key_parts::merge;
using key_parts::number_of_parts;
using key_parts::Parts;
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

template <class T, int D>
__global__ void __launch_bounds__(threads, Shape<D>::blocks) forward(Problem p, int parts,
                                                                     const T* q,        // [B, H, Nq, D]
                                                                     const T* k,        // [B, Hkv, Nk, D]
                                                                     const T* v,        // [B, Hkv, Nk, D]
                                                                     float* o_parts,    // [B, H, Nq, parts, D]
                                                                     float* lse_parts)  // [B, H, Nq, parts], base 2
{
  constexpr int Bc = Shape<D>::Bc, stage = Shape<D>::stage, q_steps = Shape<D>::q_steps;
  T* q_smem = dynamic_shared<T>();  // [Br][D]
  T* kv_smem = q_smem + Br * D;     // [2 stages][K and V][stage][D]

  const int rows = group_rows(p), row_tiles = (rows + Br - 1) / Br;
  const int part = blockIdx.x % parts, tile = blockIdx.x / parts;
  const int kv_head = tile / row_tiles, r0 = tile % row_tiles * Br;
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // of lane 0, so the compiler knows that all agree
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const unsigned q_row = kv_head * rows + r0, kv_row = kv_head * p.seq_k;  // the first, over all heads
  // Keys that any of `count` rows from r on sees, and that all of them see.
  const auto most = [&](int r, int count) { return p.visible_keys(min(r % p.seq_q + count, p.seq_q) - 1); };
  const auto least = [&](int r, int count) { return p.visible_keys(r % p.seq_q + count > p.seq_q ? 0 : r % p.seq_q); };
  const int seen = most(r0, Br);
  const int64_t stages = (seen + stage - 1) / stage;
  const int begin = int(stages * part / parts) * stage, end = min(int(stages * (part + 1) / parts) * stage, seen);
  const int all_see = least(r0 + warp * 32, 32);  // all rows of this warp
  const float scale_log2 = p.scale * log2_e;

  copy_tile<D, Br>(q_smem, q + size_t(q_row) * D, rows - r0);
  cp_async_commit();
  copy_tile<D, stage>(kv_smem, k + size_t(kv_row + begin) * D, end - begin);
  copy_tile<D, stage>(kv_smem + stage * D, v + size_t(kv_row + begin) * D, end - begin);
  cp_async_commit();

  // The row of a 16 x 16 block whose address this lane gives to ldmatrix (drawn in device/swizzle.h).
  const int qv_lane = position<16>(lane % 16, lane / 16);                   // Q and V: down, then right
  const int k_lane = position<16>(lane / 16 * 8 + lane % 8, lane / 8 % 2);  // K: right, then down
  const int q_lane = warp * 32 * page_row + qv_lane;

  cp_async_wait<1>();
  __syncthreads();  // all threads' copies of Q have arrived: before Q is read

  uint32_t q_reg[q_steps > 0 ? q_steps : 1][2][4];
#pragma unroll
  for (int step = 0; step < q_steps; step++)
    for (int b = 0; b < 2; b++) ldmatrix_x4(q_reg[step][b], q_smem + right_of<Br>(q_lane, step) + b * 16 * page_row);

  float o_reg[2][D / 8][4] = {};
  // Of rows 16 b + 8 h + g: m, and -l, which is inf until m is set. l only over this lane's columns, until the end.
  float m[2][2] = {}, minus_l[2][2] = {{INFINITY, INFINITY}, {INFINITY, INFINITY}};
  const Watched state = {q_row + warp * 32, 0, rows - r0 - warp * 32, D};

#pragma unroll 1
  for (int j0 = begin; j0 < end; j0 += Bc) {
    if (j0 % stage == 0) {
      cp_async_wait<0>();
      __syncthreads();  // this stage is in shared memory, and everyone is done with the stage before
    }
    // Where its page 0 of K starts in kv_smem.
    const int place = (j0 - begin) / stage % 2 * 2 * stage * D + j0 % stage * page_row;

    copy_ahead<D, Bc, stage>(kv_smem + (place ^ 2 * stage * D), k, v, kv_row, j0 + stage, end);

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
        ldmatrix_x4(k_reg, kv_smem + right_of<stage>(place + k_lane, step) + n * 16 * page_row);
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
    if (j0 + Bc > all_see) {  // across the diagonal, or the end of the keys
#pragma unroll
      for (int b = 0; b < 2; b++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int r = r0 + warp * 32 + 16 * b + 8 * h + g, i = r % p.seq_q;
          const int visible = p.visible_keys(i) - j0 - 2 * t;
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
        ldmatrix_x4_trans(v_reg, kv_smem + stage * D + right_of<stage>(place + qv_lane, n) + step * 16 * page_row);
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

  watch_step("O / l and LSE of this part");
#pragma unroll
  for (int b = 0; b < 2; b++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = warp * 32 + 16 * b + 8 * h + g;
      const float minus_sum = quad_sum(minus_l[b][h]), l_row = minus_sum > 0 ? 0 : -minus_sum;
      const float inverse = l_row > 0 ? 1 / l_row : 0;  // l = 0: the row sees no key of this part
      if (r0 + row >= rows) continue;
      const size_t to = size_t(q_row + row) * parts + part;
      if (t == 0) lse_parts[to] = m[b][h] + log2_approx(l_row);
      for (int n = 0; n < D / 8; n++)
        *reinterpret_cast<float2*>(o_parts + to * D + 8 * n + 2 * t) =
            make_float2(o_reg[b][n][2 * h] * inverse, o_reg[b][n][2 * h + 1] * inverse);
    }
}

unsigned tiles(const Problem& p) { return unsigned(p.batch) * p.kv_heads * ceil_div(group_rows(p), Br); }

// As many parts as give every multiprocessor all thread blocks that it can have at a time, and no more than stages.
template <int D>
int parts(const Problem& p) {
  return number_of_parts(tiles(p), Shape<D>::blocks, ceil_div(p.seq_k, Shape<D>::stage));
}

size_t workspace_bytes(const Problem& p) { return Parts::bytes(p, p.head_dim == 64 ? parts<64>(p) : parts<128>(p)); }

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const int n = parts<D>(p);
    const Parts made(p, n, args.workspace);
    const size_t shared_bytes = (Br + 4 * Shape<D>::stage) * D * sizeof(T);
    launch(forward<T, D>, {tiles(p) * n, threads, shared_bytes, stream}, p, n, q, k, v, made.o, made.lse);
    merge(p, n, made, args, stream);
  });
}

constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128, workspace_bytes, run, true};

}  // namespace

extern const attention::Rung packed;
constinit const attention::Rung packed = {
    .name = "packed",
    .idea = "the query heads that share K and V are rows of one tile, so that K and V are read once for all of them",
    .forward = attention::padded<unpadded>};

}  // namespace split_kv
