#if UNR == 1
#define UNRP _Pragma("unroll 1")
#else
#define UNRP _Pragma("unroll 2")
#endif
#include "device/stmatrix.h"
#include "forward_v.h"
namespace fp8 { namespace {
struct Followed : Direct {
  struct Range { static constexpr float start = 3, headroom = start; };
  template <int D> static constexpr int followed = D == 64 ? 3 : 2;
  template <int D> static constexpr bool before = D == 64;
  static constexpr bool by_sums = true, turns = true, q_held = QHELD;
  static constexpr int flush = 1;
  static constexpr attention::EightBits rounding = attention::rotated_tile;
};
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
UNRP
  for (int chunk = half; chunk < D / 16; chunk += 2)
#pragma unroll
    for (int key = 0; key < Bc; key += 32) {
      uint32_t pairs[4];
      ldmatrix_x4_trans(pairs, chunk_of<D>(rows, key + lane, chunk));
      // exercise transpose: make registers of four keys of a column, in P's order, and store them to the columns' rows
      uint32_t columns[4];
      for (int i = 0; i < 4; i += 2) {
        columns[i] = __byte_perm(pairs[i], pairs[i + 1], 0x6420);
        columns[i + 1] = __byte_perm(pairs[i], pairs[i + 1], 0x7531);
      }
      const int column = 16 * chunk + lane % 8 * 2 + lane / 8 % 2;  // lanes 0-7 give the rows of columns[0], and so on
      stmatrix_x4(chunk_of<Bc>(to, column, key / 16 + lane / 16), columns);
      // end transpose |
    }
}

struct Inside : Followed {
  static constexpr V v = V::rows;
  static constexpr auto unsupported = attention::not_for_hopper;

  // Warp 0: starts the copy of a tile.
  template <int D, class Smem>
  __device__ static void load_rows(Smem& smem, const TensorMap& v_map, int j, int kv_head, Ring<2>& rows) {
    mbarrier_wait(&smem.rows_empty[rows.place], rows.parity ^ 1);
    mbarrier_arrive_expect_tx(&smem.rows_full[rows.place], Bc * D);
    tensor_load(smem.v_rows[rows.place], v_map, &smem.rows_full[rows.place], 0, j * Bc, 0, kv_head);
    rows.advance();
  }

  // Warps 2 and 3: half of each tile.
  template <int D, class Smem, class Keys>
  __device__ static void transpose_tiles(Smem& smem, int tiles, Keys& ring, Ring<2>& rows, int half) {
#pragma unroll 1
    for (int j = 0; j < tiles; j++, ring.advance(), rows.advance()) {
      mbarrier_wait(&smem.rows_full[rows.place], rows.parity);
      mbarrier_wait(&smem.v_empty[ring.place], ring.parity ^ 1);
#ifndef NOTRANS
      transpose<D>(smem.v[ring.place], smem.v_rows[rows.place], half);
#endif
      fence_proxy_async();
      __syncwarp();  // the warp's half is in its place
      if (elect_one()) {
        mbarrier_arrive(&smem.rows_empty[rows.place]);
        mbarrier_arrive(&smem.v_full[ring.place]);
      }
    }
  }
};


template <int D> __global__ void take_scales(attention::ScalesOfE4m3 scales, Problem p, EightBitTiles to) {
  const int of_q = p.batch * p.heads * to.q_tiles, of_k = p.batch * p.kv_heads * to.k_tiles;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) *to.taken = 0;
  if (i < of_q) to.q_scales[i] = checked_scale(scales.q, i, scales.of_tiles);
  if (i < of_k) to.k_scales[i] = checked_scale(scales.k, i, scales.of_tiles), to.v_exponents[i] = log2f(checked_scale(scales.v, i, scales.of_tiles));
}
}
void FN(const Problem& p, const ForwardArgs& args, int what, cudaStream_t stream) {
  constexpr int D = DIM; using T = __nv_bfloat16; using R = std::conditional_t<ROWS, Inside, Followed>;
    EightBitTiles eight = tiles_in_workspace(p, args.workspace, true);
    eight.q = static_cast<e4m3*>(const_cast<void*>(args.q)), eight.k = static_cast<e4m3*>(const_cast<void*>(args.k));
    const unsigned blocks = unsigned(p.batch * p.kv_heads) * eight.k_tiles + unsigned(p.batch * p.heads);
    if (ROWS) {
      const int n = std::max(p.batch * p.heads * eight.q_tiles, p.batch * p.kv_heads * eight.k_tiles);
      if (what & 1) launch(take_scales<D>, {unsigned(ceil_div(n, 256)), 256, 0, stream}, args.scales, p, eight);
      else cudaMemsetAsync(eight.taken, 0, 4, stream);
      eight.v = static_cast<e4m3*>(const_cast<void*>(args.v));
    } else if (what & 1) launch(take_tiles<D>, {blocks, take_threads<D>, 0, stream}, static_cast<const e4m3*>(args.v), args.scales, p, eight);
    else cudaMemsetAsync(eight.taken, 0, 4, stream);
    Problem unrotated = p; unrotated.scale *= D;
    if (what & 2) attend<R, T, D>(unrotated, args, eight, tile_scales(eight), stream);
}
}
