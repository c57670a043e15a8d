// Chapter 11, rung 8, even: every multiprocessor gets as many tiles of keys as any other, or nearly as many.
//
// The work is a list of tiles of keys: those of the first Br = 192 rows of a kv head's queries (128 of wide heads,
// whose blocks have two consumers), then of the next rows, then of the next kv head. Each multiprocessor has a thread
// block, and each block a share of the list. As many rows as there are for all blocks alike are given out whole, with
// all their keys. The rest of the list is cut into equal parts. There a share may begin and end anywhere: with the last
// keys of some rows, perhaps, then all keys of the next rows, then the first keys of other rows. Each of these, and
// each whole tile of rows, is a piece. What is done by whom, and who waits for whom, for every piece:
//
//   producer, warp 0   the piece, and its Q   waits for q_empty                      -> q_full
//                      K and V, tile by tile  waits for k_empty, v_empty             -> k_full, v_full
//   producer, warp 1   O to memory            waits for o_full                       -> q_empty
//   consumers          the first S            waits for q_full, k_full               -> k_empty
//                      S(j), then O += P V(j-1) starts
//                      P = 2^x                while P V(j-1) runs                    -> v_empty
//                      O / l                  to shared memory, where Q was; or, of a piece that lacks keys, to the
//                                             workspace with m + log2(l)             -> o_full
//
// A second kernel, merge_pieces, makes O and LSE of the rows whose keys are in several pieces.
//
// What changed since 7_warpgroup: keys are not cut into equal parts for every tile of rows, but the list of all tiles
// into equal shares. With parts, 96 tiles of rows on 132 multiprocessors are either whole and leave 36 without work, or
// in two parts each, and make two rounds for 60 and one for the others. The loop is that of chapter 10, with three
// consumers: each tile of K and V that comes to shared memory is used for 192 rows. And blocks whose rows are whole go
// along the keys together, so that K and V come from memory once for all of them.
//
// Expected limit: that of chapter 10, and the two kernels' starts and ends, about 20 us.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/key_shares.h"
#include "attention/padded.h"
#include "device/bulk_copy.h"
#include "device/dependent_launch.h"
#include "device/elect.h"
#include "device/lazy_softmax.h"
#include "device/math.h"
#include "device/mbarrier.h"
#include "device/numeric.h"
#include "device/proxy_fence.h"
#include "device/ring.h"
#include "device/setmaxnreg.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/warpgroup_tile.h"
#include "device/watch.h"

namespace split_kv {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using key_parts::group_rows;
using key_parts::Piece;
using namespace warpgroup_tile;

constexpr int merge_rows = 16;  // of a thread block of merge_pieces, a warp for each

// 65536 registers are 128 for each of 512 threads. The producer gives most of its own away: 3 * 160 + 32 = 4 * 128.
// With 384 threads each has 168, and 40 + 2 * 232 = 3 * 168: so wide heads have two consumers.
template <int D>
struct Shape {
  static constexpr int consumers = D > 128 ? 2 : 3, threads = warpgroup_threads * (consumers + 1);
  static constexpr int Br = wgmma_rows * consumers;  // rows of a tile, wgmma_rows to a consumer
  static constexpr int Bc = D == 64 ? 128 : D == 128 ? 64 : D == 192 ? 112 : 80;  // keys of a tile
  static constexpr int stages = D > 128 ? 2 : 4;
  static constexpr int queries = D > 128 ? 1 : 2;  // tiles of Q; 177, 225, 217 and 225 KB
  static constexpr int producer_registers = D > 128 ? 40 : 32, consumer_registers = D > 128 ? 232 : 160;
  using Shares = key_parts::Shares<Br, Bc>;
};

template <class T, int D>
struct Shared {
  static constexpr int Bc = Shape<D>::Bc, stages = Shape<D>::stages, queries = Shape<D>::queries;
  T q[queries][Shape<D>::Br * D];  // each tile in D / 64 pages of 128 bytes a row, swizzled; later O
  T k[stages][Bc * D], v[stages][Bc * D];
  Piece piece[queries];  // that each Q belongs to; empty if none is left
  Mbarrier q_full[queries], q_empty[queries], o_full[queries];
  Mbarrier k_full[stages], k_empty[stages], v_full[stages], v_empty[stages];
};

// The results of pieces that lack some keys of their rows. A block has two at most: one that ends with the last of
// its rows' keys, and one that begins with the first.
struct Parts {
  float* o;    // [blocks][2][Br, D]
  float* lse;  // [blocks][2][Br], base 2

  Parts(void* workspace, int blocks, int Br, int D)
      : o(static_cast<float*>(workspace)), lse(o + size_t(blocks) * 2 * Br * D) {}
  static size_t bytes(int blocks, int Br, int D) { return size_t(blocks) * 2 * Br * (D + 1) * sizeof(float); }
};

// Starts the copies of a piece. One thread.
template <class T, int D, class Keys, class Queries>
__device__ __forceinline__ void load(Shared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, Piece piece, Keys& ring, Queries& q) {
  constexpr int Br = Shape<D>::Br, Bc = Shape<D>::Bc, kv_bytes = Bc * D * sizeof(T);
  mbarrier_arrive_expect_tx(&smem.q_full[q.place], Br * D * sizeof(T));
  tensor_load(smem.q[q.place], q_map, &smem.q_full[q.place], 0, piece.r0, 0, piece.kv_head);
#pragma unroll 1
  for (int j = piece.begin; j < piece.end; j++, ring.advance()) {
    mbarrier_wait(&smem.k_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.k_full[ring.place], kv_bytes);
    tensor_load(smem.k[ring.place], k_map, &smem.k_full[ring.place], 0, j * Bc, 0, piece.kv_head);
    mbarrier_wait(&smem.v_empty[ring.place], ring.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.v_full[ring.place], kv_bytes);
    tensor_load(smem.v[ring.place], v_map, &smem.v_full[ring.place], 0, j * Bc, 0, piece.kv_head);
  }
}

// The others' next piece; false if none is left.
template <class T, int D, class Queries>
__device__ bool next(Shared<T, D>& smem, Piece& piece, const Queries& q) {
  mbarrier_wait(&smem.q_full[q.place], q.parity);
  piece = smem.piece[q.place];
  return piece.begin < piece.end;
}

// A consumer's 64 rows of a piece.
template <class T, int D, class Keys, class Queries>
__device__ __forceinline__ void attend(Shared<T, D>& smem, const Problem& p, Piece piece, Keys& ring, Queries& q,
                                       Parts parts, float* lse) {
  constexpr int Br = Shape<D>::Br, Bc = Shape<D>::Bc;
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 rows
  const int first_row = piece.r0 + warp_row, group = group_rows(p);
  // Keys that any of a consumer's rows sees, and keys that all of a warp's rows see
  const int i0 = (piece.r0 + consumer * wgmma_rows) % p.seq_q, warp_i0 = first_row % p.seq_q;
  const int any = p.visible_keys(min(i0 + wgmma_rows, p.seq_q) - 1);
  const int every = p.visible_keys(warp_i0 + 16 > p.seq_q ? 0 : warp_i0);
  const int own_end = max(piece.begin + 1, min(piece.end, ceil_div(any, Bc)));
  const float scale_log2 = p.scale * log2_e;
  const T* q_rows = smem.q[q.place] + wgmma_rows * consumer * page_row;

  float s_reg[1][Bc / 8][4], o_reg[1][D / 8][4] = {};
  uint32_t p_reg[1][Bc / 16][4];
  lazy_softmax::Rows<1> rows;
  const Watched state = {int64_t(piece.kv_head) * group + first_row, 0, group - first_row, D};
  const auto scores = [&](int j) { return Watched{state.row, j * Bc, state.rows, p.seq_k - j * Bc}; };
  // x in place of S, and whether m has to rise for it
  const auto make_x = [&](int j) {
    watch_step("2. x = S - m; m rises only if it must; P = 2^x");
    watch("S", scores(j), s_reg, p.scale);
    const bool above = lazy_softmax::subtract_max(s_reg, rows, scale_log2);
    if ((j + 1) * Bc > every)  // across the diagonal, or the end of the keys
      lazy_softmax::hide(s_reg, [&](int i) { return p.visible_keys((first_row + i) % p.seq_q) - j * Bc; });
    return above;
  };
  // This warp no longer needs the buffer that the mbarrier guards.
  const auto release = [&](Mbarrier& empty) {
    if (lane == 0) mbarrier_arrive(&empty);
  };

  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  watch_step("1. S = Q K^T");
  wgmma_fence();
  start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
  wgmma_wait<0>(s_reg);
  release(smem.k_empty[ring.place]);
  if (make_x(piece.begin)) lazy_softmax::raise(s_reg, o_reg, rows, state);
  lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(piece.begin));

#pragma unroll 1
  for (int j = piece.begin + 1; j < own_end; j++) {
    const Keys before = ring;
    ring.advance();
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    mbarrier_wait(&smem.v_full[before.place], before.parity);
    watch_step("1. S = Q K^T; beside it O += P V of the tile before");
    wgmma_fence();
    start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
    start_sum<D, Bc>(o_reg, p_reg, smem.v[before.place]);
    wgmma_wait<1>(s_reg);
    release(smem.k_empty[ring.place]);
    const bool above = make_x(j);
    wgmma_wait<0>(o_reg);
    release(smem.v_empty[before.place]);
    if (above) lazy_softmax::raise(s_reg, o_reg, rows, state);
    watch_rows(state, rows, o_reg);
    lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
  }

  mbarrier_wait(&smem.v_full[ring.place], ring.parity);
  watch_step("3. O += P V");
  wgmma_fence();
  start_sum<D, Bc>(o_reg, p_reg, smem.v[ring.place]);
  wgmma_wait<0>(o_reg);
  watch_rows(state, rows, o_reg);
  release(smem.v_empty[ring.place]);
  ring.advance();

  // Tiles that only the other warpgroups compute
#pragma unroll 1
  for (int j = own_end; j < piece.end; j++, ring.advance()) {
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    release(smem.k_empty[ring.place]);
    mbarrier_wait(&smem.v_full[ring.place], ring.parity);
    release(smem.v_empty[ring.place]);
  }

  const int g = lane / 4, t = lane % 4, slot = 2 * blockIdx.x + (piece.begin == 0);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = first_row + 8 * h + g, row_of_part = slot * Br + warp_row + 8 * h + g;
    const float l = rows.l(0, h), inverse = l > 0 ? 1 / l : 0;  // l = 0: the row sees no key of the piece
    const float lse_base_2 = rows.m[0][h] + log2_approx(l);     // and m = 0, log2(l) = -inf
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      for (int c = 0; c < 2; c++) o_reg[0][n][2 * h + c] *= inverse;
    if (piece.whole()) {
      if (t == 0 && row < group) lse[size_t(piece.kv_head) * group + row] = lse_base_2 * ln_2;
    } else if (row < group) {
      if (t == 0) parts.lse[row_of_part] = lse_base_2;
#pragma unroll
      for (int n = 0; n < D / 8; n++)
        *reinterpret_cast<float2*>(parts.o + size_t(row_of_part) * D + 8 * n + 2 * t) =
            make_float2(o_reg[0][n][2 * h], o_reg[0][n][2 * h + 1]);
    }
  }
  if (piece.whole()) {
    uint32_t o_half[1][D / 16][4];
    swizzled_tile::round_fragments<T, D>(o_half, o_reg);
    swizzled_tile::store_fragments<Br, D>(smem.q[q.place] + warp_row * page_row, o_half, 0);
    fence_proxy_async();
  }
  __syncwarp();  // the warp's rows of O are in shared memory, or none of its lanes needs Q any more
  release(smem.o_full[q.place]);
}

template <class T, int D>
__global__ void __launch_bounds__(Shape<D>::threads, 1)
    forward(const __grid_constant__ TensorMap q_map,  // of Q [B * Hkv, D / 64, G * Nq, 64], in boxes of Br rows
            const __grid_constant__ TensorMap k_map,  // of K [B * Hkv, D / 64, Nk, 64], in boxes of Bc rows
            const __grid_constant__ TensorMap v_map,  // of V, likewise
            const __grid_constant__ TensorMap o_map,  // of O, as of Q
            typename Shape<D>::Shares shares,
            Parts parts,  // [blocks][2] of rows whose keys are in several pieces
            float* lse)   // [B, H, Nq], of the others
{
  constexpr int stages = Shape<D>::stages, queries = Shape<D>::queries, consumers = Shape<D>::consumers;
  Shared<T, D>& smem = *dynamic_shared<Shared<T, D>, tile_alignment>();
  if (threadIdx.x == 0) {
    for (int i = 0; i < queries; i++) {
      mbarrier_init(&smem.q_full[i], 1);
      mbarrier_init(&smem.q_empty[i], 1);
      mbarrier_init(&smem.o_full[i], 4 * consumers);  // their warps
    }
    for (int i = 0; i < stages; i++) {
      mbarrier_init(&smem.k_full[i], 1);
      mbarrier_init(&smem.v_full[i], 1);
      mbarrier_init(&smem.k_empty[i], 4 * consumers);
      mbarrier_init(&smem.v_empty[i], 4 * consumers);
    }
    fence_mbarrier_init();
  }
  __syncthreads();  // the mbarriers are there

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  Ring<stages> ring;
  Ring<queries> q;
  Piece piece;
  if (warpgroup == consumers) {
    setmaxnreg_dec<Shape<D>::producer_registers>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp == 0 && elect_one()) {
      const auto start = [&](Piece piece) {
        mbarrier_wait(&smem.q_empty[q.place], q.parity ^ 1);
        smem.piece[q.place] = piece;
        load(smem, q_map, k_map, v_map, piece, ring, q);
        q.advance();
      };
      for (int round = 0; round < shares.rounds; round++) start(shares.whole(blockIdx.x, round));
      int64_t at = shares.begin_of(blockIdx.x);
      const int64_t end = shares.begin_of(blockIdx.x + 1);
      for (; shares.get(piece, at, end); at += piece.end - piece.begin) start(piece);
      mbarrier_wait(&smem.q_empty[q.place], q.parity ^ 1);
      smem.piece[q.place] = {};
      mbarrier_arrive(&smem.q_full[q.place]);  // no piece is left
    } else if (warp == 1 && elect_one()) {
      for (; next(smem, piece, q); q.advance()) {
        mbarrier_wait(&smem.o_full[q.place], q.parity);
        if (piece.whole()) {
          tensor_store(o_map, smem.q[q.place], 0, piece.r0, 0, piece.kv_head);
          bulk_commit();
          bulk_wait_read<0>();  // O has been read: its place may be filled again, and the block may end
        }
        mbarrier_arrive(&smem.q_empty[q.place]);
      }
    }
  } else {
    setmaxnreg_inc<Shape<D>::consumer_registers>();
    for (; next(smem, piece, q); q.advance()) attend(smem, shares.p, piece, ring, q, parts, lse);
  }
}

// O and LSE of the rows whose keys are in several pieces. A warp owns a row, and weighs its pieces as merge.cu does.
// Each share but the first has thread blocks here. They have work if the share begins within a tile of rows, and is the
// first to begin there: then they merge the pieces of these rows.
template <class T, int D>
__global__ void __launch_bounds__(32 * merge_rows) merge_pieces(typename Shape<D>::Shares shares,
                                                                Parts parts,  // [blocks][2]
                                                                T* o,         // [B, H, Nq, D]
                                                                float* lse)   // [B, H, Nq]
{
  constexpr int Br = Shape<D>::Br, columns = D / 32, tile_blocks = Br / merge_rows;
  constexpr int together = 8;  // pieces of O that are on their way to a warp
  __shared__ Piece piece;
  __shared__ int first, last;  // the shares in which the rows' pieces are
  const int share = blockIdx.x / tile_blocks + 1, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    const int64_t at = shares.begin_of(share);
    shares.get(piece, at, shares.length());
    first = shares.owner_of(at - piece.begin), last = shares.owner_of(at - piece.begin + piece.all - 1);
  }
  grid_dependency_wait();  // the pieces have been written
  __syncthreads();         // and these rows are known
  if (piece.begin == 0 || first < share - 1) return;

  const int row = blockIdx.x % tile_blocks * merge_rows + threadIdx.x / 32;
  if (piece.r0 + row >= group_rows(shares.p)) return;
  float m = -INFINITY, l = 0, o_reg[columns] = {};
  const auto place_of = [&](int block) { return (2 * block + (block == first)) * Br + row; };
  // 32 pieces at a time: each lane has the weight of one, and then all lanes add up the 32 O.
  for (int from = first; from <= last; from += 32) {
    const float lse_part = from + lane <= last ? parts.lse[place_of(from + lane)] : -INFINITY;
    const float top = fmaxf(m, warp_max(lse_part));
    const float weight = lse_part == -INFINITY ? 0 : exp2_approx(lse_part - top);
    const float correction = m == -INFINITY ? 0 : exp2_approx(m - top);
    l = l * correction + warp_sum(weight);
    for (int c = 0; c < columns; c++) o_reg[c] *= correction;
#pragma unroll 1
    for (int part = 0; part < min(32, last - from + 1); part += together) {
      float2 x[together][columns / 2] = {};
#pragma unroll
      for (int i = 0; i < together; i++)
        if (from + part + i <= last) {
          const float2* o_part = reinterpret_cast<const float2*>(parts.o + size_t(place_of(from + part + i)) * D);
          for (int c = 0; c < columns / 2; c++) x[i][c] = o_part[lane * (columns / 2) + c];
        }
#pragma unroll
      for (int i = 0; i < together; i++) {
        const float of_piece = __shfl_sync(0xffffffff, weight, part + i);
        for (int c = 0; c < columns / 2; c++)
          o_reg[2 * c] += of_piece * x[i][c].x, o_reg[2 * c + 1] += of_piece * x[i][c].y;
      }
    }
    m = top;
  }
  const float inverse = l == 0 ? 0 : 1 / l;  // l = 0: the row sees no key
  const size_t to = size_t(piece.kv_head) * group_rows(shares.p) + piece.r0 + row;
  for (int c = 0; c < columns; c += 2)
    *reinterpret_cast<uint32_t*>(o + to * D + lane * columns + c) =
        pack2<T>(o_reg[c] * inverse, o_reg[c + 1] * inverse);
  if (lane == 0) lse[to] = (m + log2_approx(l)) * ln_2;
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128, 192, 256>(p, [&]<class T, int D>() {
    using S = Shape<D>;
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const int kv_heads = p.batch * p.kv_heads, rows = group_rows(p);
    const typename S::Shares shares(p);
    const Parts parts(args.workspace, shares.blocks, S::Br, D);
    launch(forward<T, D>, {unsigned(shares.blocks), S::threads, sizeof(Shared<T, D>), stream},
           tile_map<D>(q, kv_heads, rows, S::Br), tile_map<D>(k, kv_heads, p.seq_k, S::Bc),
           tile_map<D>(v, kv_heads, p.seq_k, S::Bc), tile_map<D>(o, kv_heads, rows, S::Br), shares, parts, args.lse);
    if (shares.blocks > 1)
      launch_dependent(merge_pieces<T, D>,
                       {unsigned(shares.blocks - 1) * (S::Br / merge_rows), 32 * merge_rows, 0, stream}, shares, parts,
                       o, args.lse);
  });
}

size_t workspace_bytes(const Problem& p) {
  return attention::by_dtype_and_head_dim<64, 128, 192, 256>(p, [&]<class T, int D>() {
    using S = Shape<D>;
    return Parts::bytes(typename S::Shares(p).blocks, S::Br, D);
  });
}

constexpr attention::Forward unpadded = {attention::not_for_hopper_to_256, workspace_bytes, run, true};

}  // namespace

extern const attention::Rung even;
constinit const attention::Rung even = {
    .name = "even",
    .idea = "the list of all tiles of keys is cut into equal shares, one for each multiprocessor",
    .forward = attention::padded<unpadded, attention::next_64_128_192_256>};

}  // namespace split_kv
