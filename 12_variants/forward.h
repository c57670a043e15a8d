// The forward of this chapter on every GPU since the A100: chapter 08's last (3_balanced.cu), with what models add
// where extras.h says that it is wanted. Read it beside that file: what is not about views, windows, scores or sinks is
// the same. On Hopper, hopper_forward.h takes its place.
//
// A thread block of four warps owns Br = 128 query rows of one head. Each warp carries 32 of them from Q to O,
// alone: two blocks b = 0, 1 of 16, the height of an mma. Keys come in stages of one or two tiles of Bc, double
// buffered. For each tile:
//
//   0. the copy of one tile of the next stage starts
//   1. S = Q K^T                              32 x Bc a warp, in registers
//   2. x = score(S) - m                       -inf where hidden; if no x > headroom (a warp vote), that is all;
//                                             otherwise m rises until the largest is `start`, and l and O follow
//   3. P = 2^x   l = l + rowsum P   O = O + P V
//
// and at the end O / l and LSE = ln(2) (m + log2(l)), with the sink's share in l.
#pragma once

#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "attention/schedule.h"
#include "blocks.h"
#include "device/lazy_softmax.h"
#include "device/ldmatrix.h"
#include "device/mma.h"
#include "device/numeric.h"
#include "device/swizzle.h"
#include "device/watch.h"
#include "extras.h"
#include "hopper.h"
#include "packed.h"

namespace variants {

using attention::ForwardArgs;
using attention::Mask;
using lazy_softmax::headroom;  // the threshold of rescaling
using lazy_softmax::start;     // x of the row maximum when m is set
using swizzled_tile::page_row;
using swizzled_tile::position;
using swizzled_tile::right_of;  // the XOR swizzle, 16 columns a step

constexpr int warps = 4, threads = 32 * warps;
constexpr int Br = 32 * warps;  // query rows of a thread block, 32 to a warp: two blocks of 16, the height of an mma

template <int D>
struct ForwardShape;
template <>
struct ForwardShape<own_v_head_dim> {
  static constexpr int Dv = own_v_dim;
  static constexpr int blocks = 2;   // 256 registers a thread, of which O takes 128
  static constexpr int Bc = 32;      // 32 registers for S
  static constexpr int stage = 32;   // 88 KB a block: there is no room for two of them with 64 keys
  static constexpr int q_steps = 0;  // as for 128, and so is the rest
  static constexpr bool leave_out = true;
};
template <>
struct ForwardShape<128> {
  static constexpr int Dv = 128;           // the head dim of V and O
  static constexpr int blocks = 2;         // per multiprocessor: 256 registers a thread, of which O takes 128
  static constexpr int Bc = 64;            // keys in a tile: 64 registers for S
  static constexpr int stage = 64;         // keys per barrier: Q and two stages of K and V are 96 KB a block
  static constexpr int q_steps = 0;        // of the D / 16 steps of Q K^T, those whose Q stays in registers
  static constexpr bool leave_out = true;  // tiles of which a warp sees nothing
};
template <>
struct ForwardShape<64> {
  static constexpr int Dv = 64;
  static constexpr int blocks = 3;          // 168 registers, of which O takes 64
  static constexpr int Bc = 32;             // 32 registers for S
  static constexpr int stage = 64;          // 48 KB a block
  static constexpr int q_steps = 3;         // 24 registers
  static constexpr bool leave_out = false;  // asking for every 32 keys costs more than it saves
};

template <class T, int D, class X>
__global__ void __launch_bounds__(threads, ForwardShape<D>::blocks)
    forward(Problem p, int round_heads, attention::ForwardViews<T> tensors,
            float* lse,          // [B, H, Nq]
            const float* alibi,  // [B, H]
            const float* sink,   // [H], or none
            Lists<X> lists) {
  using Shape = ForwardShape<D>;
  constexpr int Dv = Shape::Dv, Bc = Shape::Bc, stage = Shape::stage, q_steps = Shape::q_steps;
  constexpr int stage_size = stage * (D + Dv);  // elements
  T* q_smem = dynamic_shared<T>();              // [Br][D]
  T* kv_smem = q_smem + Br * D;                 // [2 stages] of K [stage][D] and V [stage][Dv]

  attention::Tile tile_of_block = {};
  unsigned head_rows = p.seq_q;  // in LSE
  if constexpr (X::packed) {
    const auto [b, index] = lists.find(blockIdx.x, p.heads);
    if (b < 0) return;  // there is no such tile
    head_rows = p.total_q;
    if (alibi) alibi += b * p.heads;
    const Sequence sequence = lists.of(b);
    const int q = sequence.begin_q, k = sequence.begin_k;
    tensors = {tensors.q.from_row(q), tensors.k.from_row(k), tensors.v.from_row(k), tensors.o.from_row(q)};
    lse += q;
    p = alone(p, sequence);
    // The last rows first, as tile_of_block() does
    const attention::TileList<Br> tiles = {p.heads, min(round_heads, p.heads), ceil_div(p.seq_q, Br), Mask::causal};
    tiles.get(tile_of_block, index);
  } else {
    tile_of_block = attention::tile_of_block<Br>(p, round_heads);
  }
  const auto [head, i0] = tile_of_block;
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // of lane 0, so the compiler knows that all agree
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int w0 = i0 + warp * 32;  // this warp's first row
  const unsigned k = tensors.k.of_head(p.kv_head(head), p.kv_heads);
  const unsigned v = tensors.v.of_head(p.kv_head(head), p.kv_heads);
  const SeenKeys of_block = seen_by<X>(p, i0, min(i0 + Br, p.seq_q) - 1);
  const SeenKeys of_warp = seen_by<X>(p, w0, w0 + 31);
  int begin = of_block.begin / stage * stage, end = of_block.end;
  // A loop over listed tiles counts their keys, one tile behind the other, and looks up which they are.
  int first_tile = 0;
  if constexpr (X::blocks) {
    if (*lists.wrong) return;
    const auto list = lists.of_row(p, head, i0 / Br);
    begin = 0, end = (list.end - list.begin) * BlockMask::tile, first_tile = list.begin;
  }
  const auto listed = [&](int j) {
    if constexpr (X::blocks) return lists.row_tile(first_tile + j / BlockMask::tile);
  };
  const auto key_at = [&](int j) {
    if constexpr (!X::blocks) return j;
    if constexpr (X::blocks) return j < end ? listed(j).tile * BlockMask::tile + j % BlockMask::tile : p.seq_k;
  };
  const int keys = X::blocks ? p.seq_k : end;  // those behind them come as zeros
  const typename X::Score score = typename X::Score(p, alibi).of_head(head);
  const unsigned q_row = head * head_rows + i0;  // over all heads

  copy_rows<Br, D, Br, threads>(q_smem, tensors.q, tensors.q.of_head(head, p.heads), i0, p.seq_q);
  cp_async_commit();
  {
    T* const first_stage = kv_smem + begin / stage % 2 * stage_size;
    copy_rows<stage, D, stage, threads>(first_stage, tensors.k, k, key_at(begin), keys);
    copy_rows<stage, Dv, stage, threads>(first_stage + stage * D, tensors.v, v, key_at(begin), keys);
  }
  cp_async_commit();

  // The row of a 16 x 16 block whose address this lane gives to ldmatrix (drawn in device/swizzle.h).
  const int qv_lane = position<16>(lane % 16, lane / 16);                   // Q and V: down, then right
  const int k_lane = position<16>(lane / 16 * 8 + lane % 8, lane / 8 % 2);  // K: right, then down
  const int q_lane = warp * 32 * page_row + qv_lane;

  cp_async_wait<1>();
  __syncthreads();  // all threads' copies of Q have arrived: before Q is read, or O written over it without a key

  uint32_t q_reg[q_steps > 0 ? q_steps : 1][2][4];
#pragma unroll
  for (int step = 0; step < q_steps; step++)
    for (int b = 0; b < 2; b++) ldmatrix_x4(q_reg[step][b], q_smem + right_of<Br>(q_lane, step) + b * 16 * page_row);

  float o_reg[2][Dv / 8][4] = {};
  // Of rows 16 b + 8 h + g: m, and -l, which is inf until m is set. l only over this lane's columns, until the end.
  float m[2][2] = {}, minus_l[2][2] = {{INFINITY, INFINITY}, {INFINITY, INFINITY}};
  const Watched state = {q_row + warp * 32, 0, p.seq_q - w0, Dv};

#pragma unroll 1
  for (int at = begin; at < end; at += Bc) {
    if (at % stage == 0) {
      cp_async_wait<0>();
      __syncthreads();  // this stage is in shared memory, and everyone is done with the stage before
    }
    const int tile = at / stage % 2 * stage_size + at % stage * page_row;  // where its page 0 of K starts in kv_smem
    T* const ahead = kv_smem + (tile ^ stage_size);  // of 64 keys a power of 2; of 32 it is 0 or this
    copy_rows<Bc, D, stage, threads>(ahead, tensors.k, k, key_at(at + stage), keys);
    copy_rows<Bc, Dv, stage, threads>(ahead + stage * D, tensors.v, v, key_at(at + stage), keys);
    cp_async_commit();
    const int j0 = key_at(at);

    // Only other warps have to compute this tile.
    if (Shape::leave_out && (j0 >= of_warp.end || (X::window && j0 + Bc <= of_warp.begin))) continue;

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

    watch_step("2. x = score(S) - m; m rises only if it must, then O *= correction");
    // x, in place of S, and the largest of all x and -l. -l is inf while a row has no m, and below 0 later. From
    // 0 up, floats are in the order of their bits, and the largest of three integers is a single instruction of sm_90.
    int largest[2][2];  // four, because a chain of 64 would take as long as the exp2
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int h = 0; h < 2; h++) {
        largest[b][h] = __float_as_int(minus_l[b][h]);
        const float own = w0 + 16 * b + 8 * h + g + p.seq_k - p.seq_q - j0 - 2 * t;  // the distance to column 0
        for (int n = 0; n < Bc / 8; n++) {
          float* x = s_reg[b][n] + 2 * h;
          for (int c = 0; c < 2; c++) x[c] = score(x[c], own - (8 * n + c)) - m[b][h];
          largest[b][h] = max(max(largest[b][h], __float_as_int(x[0])), __float_as_int(x[1]));
        }
      }
    const int top_bits = max(max(largest[0][0], largest[0][1]), max(largest[1][0], largest[1][1]));
    const bool above = __any_sync(0xffffffff, top_bits > __float_as_int(headroom));  // hidden ones too
    hide<X>(s_reg, p, of_warp, w0, j0);  // across an edge of what the rows see
    if constexpr (X::blocks)
      if (const uint32_t* of_tile = lists.bits_of_queries(listed(at).cut)) {
        Bits<2, Bc / 8> bits;
        bits.load(of_tile, warp * 32, j0 % BlockMask::tile);
        bits.hide(s_reg, -INFINITY);
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
          for (int n = 0; n < Dv / 8; n++)
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
      for (int n = 0; n < Dv / 16; n++) {
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
      const float minus_sum = quad_sum(minus_l[b][h]);
      const float l_row = minus_sum > 0 ? 0 : -minus_sum;  // 0: the row sees no key
      const RowEnd of_row = end_of_row(m[b][h], l_row, sink, head % p.heads);
      if (t == 0 && i0 + row < p.seq_q) lse[q_row + row] = of_row.lse;
      for (int n = 0; n < Dv / 8; n++)
        *reinterpret_cast<uint32_t*>(q_smem + position<Br>(row, n) + 2 * t) =
            pack2<T>(o_reg[b][n][2 * h] * of_row.factor, o_reg[b][n][2 * h + 1] * of_row.factor);
    }
  __syncwarp();  // the warp's 32 rows of O are in shared memory
  const unsigned o = tensors.o.of_head(head, p.heads);
#pragma unroll
  for (int i = lane; i < 32 * Dv / 8; i += 32) {
    const int row = warp * 32 + i / (Dv / 8), chunk = i % (Dv / 8);
    if (i0 + row < p.seq_q)
      store_pack8(tensors.o.at_row(o + chunk, i0 + row), load_pack8(q_smem + position<Br>(row, chunk)));
  }
}

template <class X>
void run_forward(const Problem& problem, const ForwardArgs& args, cudaStream_t stream) {
  const Problem p = with_both_sides<X>(problem);
  if (on_hopper::takes(p, args)) return on_hopper::run_forward<X>(p, args, stream);
  const auto run = [&]<class T, int D>() {
    using Shape = ForwardShape<D>;
    const int head_tiles = attention::tiles_of_head(p, p.seq_q, p.total_q, Br);
    const unsigned blocks = unsigned(attention::batches(p)) * p.heads * head_tiles;
    const size_t shared_bytes = (Br * D + 2 * Shape::stage * (D + Shape::Dv)) * sizeof(T);
    const auto tensors = attention::views_of<T>(p, args);
    Lists<X> lists;
    if constexpr (X::packed) lists = list_queries(p, args, Br, 0, stream);
    if constexpr (X::blocks) lists = check_lists(p, args, 0, stream);
    launch(forward<T, D, X>, {blocks, threads, shared_bytes, stream}, p, attention::heads_in_a_round(p), tensors,
           args.lse, args.alibi, args.sink, lists);
  };
  if constexpr (takes_own_v<X>)
    if (p.head_dim == own_v_head_dim) return attention::by_dtype_and_head_dim<own_v_head_dim>(p, run);
  attention::by_dtype_and_head_dim<64, 128>(p, run);
}

// On Hopper a count of tiles, which forward() takes none of; and the list of packed ones, of the least rows to a tile.
inline size_t forward_workspace(const Problem& p) {
  return sizeof(int) + Sequences::bytes(p, attention::tiles_of_head(p, p.seq_q, p.total_q, Br)) +
         BlockLists::bytes(p, false);
}

}  // namespace variants
