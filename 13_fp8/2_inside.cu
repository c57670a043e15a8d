// Chapter 13, rung 2, inside: V is transposed on its way, between two places in shared memory.
//
// Two small kernels make e4m3 and a scale of each of Q, K and V first (quantize.h). Then a thread block stays as long
// as the kernel runs and takes its share of the tiles of Br query rows of one head. Each consumer warpgroup computes 64
// rows of a tile, from Q to O; one more warpgroup is the producer, of which all warps have work. What each does, waits
// for, and signals (->):
//
//   producer, warp 0   Q of a tile            waits for q_empty                      -> q_full
//                      K and V, tile by tile  waits for k_empty, rows_empty          -> k_full, rows_full
//   producer, warp 1   O to memory            waits for o_full                       -> o_empty
//   producer, 2 and 3  V transposed           waits for rows_full, v_empty           -> rows_empty, v_full
//   consumers          the first S            waits for q_full, k_full               -> k_empty
//                      S(j), then O += P V(j-1) starts
//                      x = scale log2(e) S(j) - m while P V(j-1) runs                -> v_empty
//                      P = 2^x, rounded to e4m3
//                      the last P V                                                  -> q_empty
//                      O scale_v / l          waits for o_empty                      -> o_full
//
// What changed since 1_direct: V comes as it lies, [keys][D], to a place of its own. Two warps of the producer load
// pairs of bytes with ldmatrix.trans, and exchange bytes within registers; so each lane has four keys of a column, in
// the order in which registers hold P, and stmatrix stores them. No kernel transposes V before.
//
// Expected limit: the exponentials, as before.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/elect.h"
#include "device/lazy_softmax.h"
#include "device/ldmatrix.h"
#include "device/limits.h"
#include "device/math.h"
#include "device/mbarrier.h"
#include "device/proxy_fence.h"
#include "device/ring.h"
#include "device/setmaxnreg.h"
#include "device/stmatrix.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/warpgroup_tile.h"
#include "device/watch.h"
#include "quantize.h"

namespace fp8 {
namespace {

using attention::ForwardArgs;
using attention::key_tiles;
using attention::Tile;
using attention::TileList;
using namespace warpgroup_tile;

constexpr int Bc = key_tile;

// 65536 registers are 168 for each of 384 threads, or 128 for each of 512. The producer gives most of its own away.
template <int D>
struct Shape;
template <>
struct Shape<128> {
  static constexpr int consumers = 2, stages = 3;  // a thread has 64 registers of O, 64 of S, 16 of P; 193 KB
  static constexpr int producer_registers = 56, consumer_registers = 224;
};
template <>
struct Shape<64> {
  static constexpr int consumers = 3, stages = 6;  // 32 registers of O, 64 of S, 16 of P; 161 KB
  static constexpr int producer_registers = 56, consumer_registers = 152;
};
template <int D>
constexpr int Br = int(Shape<D>::consumers) * wgmma_rows;
template <int D>
constexpr int threads = (Shape<D>::consumers + 1) * warpgroup_threads;

template <class T, int D>
struct Shared {
  static constexpr int stages = Shape<D>::stages;
  e4m3 q[2][Br<D> * D];    // each of these in rows of D bytes, swizzled
  e4m3 k[stages][Bc * D];  //
  e4m3 v[stages][D * Bc];  // transposed, in rows of Bc bytes
  T o[Br<D> * D];          // in D / 64 pages of 128 bytes a row, swizzled
  e4m3 v_rows[2][Bc * D];  // before it is transposed
  Mbarrier rows_full[2], rows_empty[2];
  Mbarrier q_full[2], q_empty[2], o_full, o_empty;
  Mbarrier k_full[stages], k_empty[stages], v_full[stages], v_empty[stages];
};

// Thread blocks share out gridDim.x tiles of the list at a time, and every other time in reverse: whoever had the
// longest tile has the shortest one the next time.
template <int rows>
__device__ bool get(const TileList<rows>& tiles, Tile& tile, int turn) {
  return tiles.get(tile, turn * gridDim.x + (turn % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x));
}

// Starts the copies of a tile. One thread.
template <class T, int D, class Keys, class Queries>
__device__ __forceinline__ void load(Shared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const Problem& p, Tile tile, Keys& ring, Queries& q,
                                     Ring<2>& rows) {
  mbarrier_wait(&smem.q_empty[q.place], q.parity ^ 1);
  mbarrier_arrive_expect_tx(&smem.q_full[q.place], Br<D> * D);
  tensor_load(smem.q[q.place], q_map, &smem.q_full[q.place], 0, tile.i0, tile.head);
  const int tiles = key_tiles<Bc>(p, tile.i0 + Br<D> - 1), kv_head = p.kv_head(tile.head);
#pragma unroll 1
  for (int j = 0; j < tiles; j++, ring.advance(), rows.advance()) {
    mbarrier_wait(&smem.k_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.k_full[ring.place], Bc * D);
    tensor_load(smem.k[ring.place], k_map, &smem.k_full[ring.place], 0, j * Bc, kv_head);
    mbarrier_wait(&smem.rows_empty[rows.place], rows.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.rows_full[rows.place], Bc * D);
    tensor_load(smem.v_rows[rows.place], v_map, &smem.rows_full[rows.place], 0, j * Bc, kv_head);
  }
}

// Where 16 bytes of a row lie in a tile whose rows have so many.
template <int bytes_of_row>
__device__ e4m3* chunk_of(e4m3* tile, int row, int chunk) {
  return tile + row * bytes_of_row + (chunk ^ row * bytes_of_row / 128 % (bytes_of_row / 16)) * 16;
}

// Half of a tile of V, transposed by a warp: 32 keys and 16 columns at a time. ldmatrix takes two bytes for one number.
// Of eight keys and the columns 2 c and 2 c + 1, transposed, lane 4 c + t gets the keys 2 t and 2 t + 1. With those of
// the next eight keys it has four keys of two columns, and sorts them by columns.
template <int D>
__device__ __forceinline__ void transpose(e4m3* to, e4m3* rows, int half) {
  const int lane = threadIdx.x % 32;
#pragma unroll 2
  for (int chunk = half; chunk < D / 16; chunk += 2)
#pragma unroll
    for (int key = 0; key < Bc; key += 32) {
      uint32_t pairs[4], columns[4];
      ldmatrix_x4_trans(pairs, chunk_of<D>(rows, key + lane, chunk));
      for (int i = 0; i < 4; i += 2) {
        columns[i] = __byte_perm(pairs[i], pairs[i + 1], 0x6420);
        columns[i + 1] = __byte_perm(pairs[i], pairs[i + 1], 0x7531);
      }
      const int column = 16 * chunk + lane % 8 * 2 + lane / 8 % 2;  // lanes 0-7 give the rows of columns[0], and so on
      stmatrix_x4(chunk_of<Bc>(to, column, key / 16 + lane / 16), columns);
    }
}

// P = 2^x as A fragments of e4m3, and l, of P before it is rounded. A register of a fragment has four columns, and a
// lane has them in two fragments of x side by side, two in each.
template <int columns, class Rows>
__device__ __forceinline__ void exponentiate(uint32_t (&p)[1][columns / 4][4], const float (&x)[1][columns][4],
                                             Rows& rows, [[maybe_unused]] Watched tile) {
#pragma unroll
  for (int step = 0; step < columns / 4; step++)
#pragma unroll
    for (int r = 0; r < 4; r++) {
      const int h = r % 2, n = 4 * step + r / 2 * 2;
      const float *left = x[0][n] + 2 * h, *right = x[0][n + 1] + 2 * h;
      const float p0 = exp2_approx(left[0]), p1 = exp2_approx(left[1]);
      const float p2 = exp2_approx(right[0]), p3 = exp2_approx(right[1]);
      watch_pair("P", tile, 0, n / 2, h, p0, p1);
      watch_pair("P", tile, 0, n / 2, h + 2, p2, p3);
      rows.minus_l[0][h] -= (p0 + p1) + (p2 + p3);
      p[0][step][r] = pack4<e4m3>(p0, p1, p2, p3);
    }
}

// A consumer's 64 rows of a tile.
template <class T, int D, class Keys, class Queries>
__device__ __forceinline__ void attend(Shared<T, D>& smem, const Problem& p, Tile tile, Keys& ring, Queries& q,
                                       int o_parity, const float* scales, float* lse) {
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 rows
  const int tiles = key_tiles<Bc>(p, tile.i0 + Br<D> - 1);
  const int own_tiles =
      tile.i0 + wgmma_rows * consumer < p.seq_q ? key_tiles<Bc>(p, tile.i0 + wgmma_rows * (consumer + 1) - 1) : 1;
  const int first_row = tile.i0 + warp_row, warp_first = p.visible_keys(first_row);
  constexpr float largest_scale = 0x1p127f;  // of a larger one the score 0 would become NaN
  const float scale = fminf(p.scale * scales[0] * scales[1], largest_scale / 2), scale_log2 = scale * log2_e;
  const e4m3* q_rows = smem.q[q.place] + wgmma_rows * consumer * D;

  float s_reg[1][Bc / 8][4], o_reg[1][D / 8][4] = {};
  uint32_t p_reg[1][Bc / 32][4];
  lazy_softmax::Rows<1, lazy_softmax::AtMostOne> rows;
  const Watched state = {int64_t(tile.head) * p.seq_q + first_row, 0, p.seq_q - first_row, D};
  const auto scores = [&](int j) { return Watched{state.row, j * Bc, state.rows, p.seq_k - j * Bc}; };
  // x in place of S, and whether m has to rise for it
  const auto make_x = [&](int j) {
    watch_step("2. x = S - m; m rises if it must; P = 2^x");
    watch("S", scores(j), s_reg, scale);
    const bool above = lazy_softmax::subtract_max(s_reg, rows, scale_log2);
    if ((j + 1) * Bc > warp_first)  // across the diagonal, or the end of the keys
      lazy_softmax::hide(s_reg, [&](int i) { return p.visible_keys(first_row + i) - j * Bc; });
    return above;
  };
  // This warp no longer needs the buffer that the mbarrier guards.
  const auto release = [&](Mbarrier& empty) {
    if (lane == 0) mbarrier_arrive(&empty);
  };

  mbarrier_wait(&smem.q_full[q.place], q.parity);
  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  watch_step("1. S = Q K^T");
  wgmma_fence();
  start_product<Br<D>, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
  wgmma_wait<0>(s_reg);
  release(smem.k_empty[ring.place]);
  if (make_x(0)) lazy_softmax::raise(s_reg, o_reg, rows, state);
  exponentiate(p_reg, s_reg, rows, scores(0));

#pragma unroll 1
  for (int j = 1; j < own_tiles; j++) {
    const Keys before = ring;
    ring.advance();
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    mbarrier_wait(&smem.v_full[before.place], before.parity);
    watch_step("1. S = Q K^T; beside it O += P V of the tile before");
    wgmma_fence();
    start_product<Br<D>, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
    start_sum_by_transpose<D, Bc>(o_reg, p_reg, smem.v[before.place]);
    wgmma_wait<1>(s_reg);
    release(smem.k_empty[ring.place]);
    const bool above = make_x(j);
    wgmma_wait<0>(o_reg);
    release(smem.v_empty[before.place]);
    if (above) lazy_softmax::raise(s_reg, o_reg, rows, state);
    watch_rows(state, rows);
    watch("O", state, o_reg, scales[2]);
    exponentiate(p_reg, s_reg, rows, scores(j));
  }

  mbarrier_wait(&smem.v_full[ring.place], ring.parity);
  watch_step("3. O += P V");
  wgmma_fence();
  start_sum_by_transpose<D, Bc>(o_reg, p_reg, smem.v[ring.place]);
  wgmma_wait<0>(o_reg);
  watch_rows(state, rows);
  watch("O", state, o_reg, scales[2]);
  release(smem.v_empty[ring.place]);
  release(smem.q_empty[q.place]);
  ring.advance();

  // Tiles that only the other warpgroups compute
#pragma unroll 1
  for (int j = own_tiles; j < tiles; j++, ring.advance()) {
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    release(smem.k_empty[ring.place]);
    mbarrier_wait(&smem.v_full[ring.place], ring.parity);
    release(smem.v_empty[ring.place]);
  }

  watch_step("O / l and LSE");
  const int g = lane / 4;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = first_row + 8 * h + g;
    const float l = rows.l(0, h), factor = l > 0 ? scales[2] / l : 0;  // l = 0: the row sees no key
    if (lane % 4 == 0 && row < p.seq_q) lse[size_t(tile.head) * p.seq_q + row] = (rows.m[0][h] + log2_approx(l)) * ln_2;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      for (int c = 0; c < 2; c++) o_reg[0][n][2 * h + c] *= factor;
  }
  uint32_t o_half[1][D / 16][4];
  swizzled_tile::round_fragments<T, D>(o_half, o_reg);
  mbarrier_wait(&smem.o_empty, o_parity ^ 1);
  swizzled_tile::store_fragments<Br<D>, D>(smem.o + warp_row * page_row, o_half, 0);
  fence_proxy_async();
  __syncwarp();  // the warp's rows of O are in shared memory
  release(smem.o_full);
}

template <class T, int D>
__global__ void __launch_bounds__(threads<D>, 1)
    forward(const __grid_constant__ TensorMap q_map,  // of Q [B * H, Nq, D], in boxes of Br rows
            const __grid_constant__ TensorMap k_map,  // of K [B * Hkv, Nk, D], in boxes of Bc rows
            const __grid_constant__ TensorMap v_map,  // of V, likewise
            const __grid_constant__ TensorMap o_map,  // of O [B * H, D / 64, Nq, 64], in boxes of Br rows
            Problem p, TileList<Br<D>> tiles,
            const float* scales,  // [3]
            float* lse)           // [B, H, Nq]
{
  constexpr int consumers = Shape<D>::consumers, stages = Shape<D>::stages;
  Shared<T, D>& smem = *dynamic_shared<Shared<T, D>, tile_alignment>();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) {
      mbarrier_init(&smem.q_full[i], 1);
      mbarrier_init(&smem.q_empty[i], 4 * consumers);  // their warps
      mbarrier_init(&smem.rows_full[i], 1);
      mbarrier_init(&smem.rows_empty[i], 2);
    }
    mbarrier_init(&smem.o_full, 4 * consumers);
    mbarrier_init(&smem.o_empty, 1);
    for (int i = 0; i < stages; i++) {
      mbarrier_init(&smem.k_full[i], 1);
      mbarrier_init(&smem.v_full[i], 2);
      mbarrier_init(&smem.k_empty[i], 4 * consumers);
      mbarrier_init(&smem.v_empty[i], 4 * consumers);
    }
    fence_mbarrier_init();
  }
  __syncthreads();  // the mbarriers are there

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  Ring<stages> ring;
  Ring<2> q, rows;
  Tile tile;
  if (warpgroup == consumers) {
    setmaxnreg_dec<Shape<D>::producer_registers>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp == 0 && elect_one()) {
      for (int turn = 0; get(tiles, tile, turn); turn++, q.advance())
        load(smem, q_map, k_map, v_map, p, tile, ring, q, rows);
    } else if (warp == 1 && elect_one()) {
      for (int turn = 0; get(tiles, tile, turn); turn++) {
        mbarrier_wait(&smem.o_full, turn % 2);
        tensor_store(o_map, smem.o, 0, tile.i0, 0, tile.head);
        bulk_commit();
        bulk_wait_read<0>();  // O has been read: its place may be filled again, and the block may end
        mbarrier_arrive(&smem.o_empty);
      }
    } else if (warp >= 2) {
      for (int turn = 0; get(tiles, tile, turn); turn++)
#pragma unroll 1
        for (int j = key_tiles<Bc>(p, tile.i0 + Br<D> - 1); j > 0; j--, ring.advance(), rows.advance()) {
          mbarrier_wait(&smem.rows_full[rows.place], rows.parity);
          mbarrier_wait(&smem.v_empty[ring.place], ring.parity ^ 1);
          transpose<D>(smem.v[ring.place], smem.v_rows[rows.place], warp - 2);
          fence_proxy_async();
          __syncwarp();  // the warp's half is in its place
          if (elect_one()) {
            mbarrier_arrive(&smem.rows_empty[rows.place]);
            mbarrier_arrive(&smem.v_full[ring.place]);
          }
        }
    }
  } else {
    setmaxnreg_inc<Shape<D>::consumer_registers>();
    for (int turn = 0; get(tiles, tile, turn); turn++, q.advance())
      attend(smem, p, tile, ring, q, turn % 2, scales, lse);
  }
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto tensors = attention::tensors_of<T>(args);
    const EightBits eight = in_workspace(p, args.workspace);
    quantize<T, D, V::rows>(p, tensors, eight, stream);

    const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
    const auto rows_of = [](const e4m3* x, int matrices, int rows, int columns, int box_rows, int box_columns) {
      return tensor_map(x, {columns, rows, matrices}, {columns, int64_t(columns) * rows}, {box_columns, box_rows, 1});
    };
    const auto tiles = attention::all_tiles<Br<D>>(p);
    const unsigned blocks = std::min(multiprocessors(), tiles.heads * tiles.row_tiles);
    launch(forward<T, D>, {blocks, threads<D>, sizeof(Shared<T, D>), stream},
           rows_of(eight.q, heads, p.seq_q, D, Br<D>, D), rows_of(eight.k, kv_heads, p.seq_k, D, Bc, D),
           rows_of(eight.v, kv_heads, p.seq_k, D, Bc, D), tile_map<D>(tensors.o, heads, p.seq_q, Br<D>), p, tiles,
           eight.scales, args.lse);
  });
}

constexpr attention::Forward unpadded = {.unsupported = attention::not_for_hopper,
                                         .workspace_bytes = workspace_bytes,
                                         .run = run,
                                         .writes_lse = true,
                                         .eight_bits = attention::scale_of_tensor};

}  // namespace

extern const attention::Rung inside;
constinit const attention::Rung inside = {
    .name = "inside",
    .idea =
        "two warps transpose V on its way, from one place in shared memory to another: its bytes come out in the order "
        "of P's registers",
    .forward = attention::padded<unpadded>};

}  // namespace fp8
