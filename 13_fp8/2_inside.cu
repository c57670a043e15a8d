// Chapter 13, rung 2, inside: V is transposed on its way, between two places in shared memory.
//
// The kernel is that of forward.h, with a producer of which all warps have work:
//
//   producer, warp 0   Q, K and V             waits for k_empty, rows_empty          -> k_full, rows_full
//   producer, 2 and 3  V transposed           waits for rows_full, v_empty           -> rows_empty, v_full
//
// What changed since direct: V comes as it lies, [keys][D], to a place of its own. Two warps of the producer load
// pairs of bytes with ldmatrix.trans, and exchange bytes within registers; so each lane has four keys of a column, in
// the order in which registers hold P, and stmatrix stores them. No kernel transposes V before. At D = 128 a stage is
// gone for that place, and 16 registers of a consumer's thread for theirs.
//
// Expected limit: the exponentials, as before.
#include "device/stmatrix.h"
#include "forward.h"

namespace fp8 {
namespace {

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

struct Inside : Direct {
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
      transpose<D>(smem.v[ring.place], smem.v_rows[rows.place], half);
      fence_proxy_async();
      __syncwarp();  // the warp's half is in its place
      if (elect_one()) {
        mbarrier_arrive(&smem.rows_empty[rows.place]);
        mbarrier_arrive(&smem.v_full[ring.place]);
      }
    }
  }
};

}  // namespace

extern const attention::Rung inside;
constinit const attention::Rung inside = {
    .name = "inside",
    .idea =
        "two warps transpose V on its way, from one place in shared memory to another: its bytes come out in the order "
        "of P's registers",
    .forward = attention::padded<unpadded<Inside>>};

}  // namespace fp8
