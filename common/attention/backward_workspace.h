// The host's side of a backward whose thread blocks own keys (chapter 07, 5_one_loop.cu, and all that follow): how many
// tiles and blocks there are, and what lies where in the workspace.
#pragma once

#include "attention/dispatch.h"
#include "device/backward_pairs.h"
#include "device/limits.h"

namespace attention {

// Tiles of a head's rows, of packed sequences of all of them: as many as there can be, since each begins a tile. Those
// of sequence b are counted from first_tile() on.
__host__ __device__ inline int tiles_of_head(const Problem& p, int seq, int total, int tile_rows) {
  return p.packed ? total / tile_rows + p.batch : ceil_div(seq, tile_rows);
}
__host__ __device__ inline int first_tile(int begin, int b, int tile_rows) { return begin / tile_rows + b; }
// How many times a head has so many tiles.
__host__ __device__ inline int batches(const Problem& p) { return p.packed ? 1 : p.batch; }

// Numbers of tiles and thread blocks. S is a shape: D, Br, Bc, threads.
template <class S>
struct BackwardTiles {
  int group, group_rows;         // query heads that read one kv head; their rows
  int head_tiles, kv_tiles;      // of a query head, of a kv head
  int group_tiles;               // of the query heads that read one kv head
  unsigned q_tiles, key_blocks;  // over all heads
  unsigned row_blocks;           // of `prepare`, whose threads take 8 elements each

  explicit BackwardTiles(const Problem& p)
      : group(p.heads / p.kv_heads),
        group_rows(group * p.seq_q),
        head_tiles(tiles_of_head(p, p.seq_q, p.total_q, S::Br)),
        kv_tiles(tiles_of_head(p, p.seq_k, p.total_k, S::Bc)),
        group_tiles(group * head_tiles),
        q_tiles(unsigned(batches(p)) * p.heads * head_tiles),
        key_blocks(unsigned(batches(p)) * p.kv_heads * kv_tiles),
        row_blocks(q_tiles * (S::Br * S::D / 8 / S::threads)) {}
};

// The workspace. Where the parts of dQ are added up in order, each of the `parts` of a tile has a semaphore, and there
// is a counter of tickets.
struct BackwardWorkspace {
  float* dq_sum;  // [q_tiles][Br * D]
  float* stats;   // [q_tiles][2][Br]
  int* turns;     // [q_tiles][parts]
  int* tickets;   // [1]

  template <class S>
  static BackwardWorkspace of(void* memory, const BackwardTiles<S>& tiles, int parts = 0) {
    float* const dq_sum = static_cast<float*>(memory);
    float* const stats = dq_sum + size_t(tiles.q_tiles) * S::Br * S::D;
    int* const turns = reinterpret_cast<int*>(stats + size_t(tiles.q_tiles) * 2 * S::Br);
    return {dq_sum, stats, turns, turns + size_t(tiles.q_tiles) * parts};
  }

  static size_t bytes(const Problem& p, int Br, int parts = 0) {
    const size_t q_tiles = size_t(batches(p)) * p.heads * tiles_of_head(p, p.seq_q, p.total_q, Br);
    return (q_tiles * (Br * (p.head_dim + 2) + parts) + (parts > 0)) * sizeof(float);
  }
};

// f<T, S>(), with the T of the problem's dtype and the shape of device/backward_pairs.h for its head dim: the largest
// that the device has shared memory for, or the small one for few keys. more_bytes is what a kernel needs besides.
template <class F>
void by_dtype_and_shape(const Problem& p, [[maybe_unused]] size_t more_bytes, F&& f) {
  by_dtype(p, [&]<class T>() {
    using namespace backward_pairs;
    if (p.head_dim == 64)
      f.template operator()<T, Shape64>();
#ifdef WORKBOOK_HEAD_DIMS_TO_64
    else
      not_compiled();
#else
    else if (p.seq_k > SmallShape128::Bc && Shape128::shared_bytes + more_bytes <= largest_shared_memory())
      f.template operator()<T, Shape128>();
    else
      f.template operator()<T, SmallShape128>();
#endif
  });
}

}  // namespace attention
