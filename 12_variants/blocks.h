// Block masks: a thread block does not work out which tiles its rows see, it reads a list of them. attention/rung.h
// says what is in the lists; here is what kernels read of them, and what they do with a tile that is cut: one in which
// some pairs are not seen.
//
// Lists may be anything, and only the device can know. So a small kernel looks at all of them first (6_blocks.cu). If
// they are no lists of a mask, the others do nothing, and all results become NaN.
#pragma once

#include "attention/backward_workspace.h"
#include "extras.h"
#include "packed.h"

namespace variants {

using attention::BlockMask;

constexpr int most_checkers = 256;

// What kernels know of a block mask.
struct BlockLists {
  BlockMask mask;
  int rows, columns;  // of tiles
  int checkers;       // thread blocks that look at the lists
  // In the workspace
  int* wrong;    // [1]: the lists are none
  int* parts;    // [checkers], the same of what each of them has looked at
  int4* places;  // [listed], for a backward: of a tile in the lists of columns, what is said of it there, and how many
                 // are before it in its row, and how many behind it

  BlockLists() = default;
  BlockLists(const Problem& p, const BlockMask& mask, void* workspace)
      : mask(mask),
        rows(ceil_div(p.seq_q, BlockMask::tile)),
        columns(ceil_div(p.seq_k, BlockMask::tile)),
        checkers(0),
        wrong(reinterpret_cast<int*>((reinterpret_cast<uintptr_t>(workspace) + 15) / 16 * 16)),
        parts(wrong + 4),
        places(reinterpret_cast<int4*>(parts + most_checkers)) {}
  // Behind any multiple of 4; `places` of a backward alone.
  static size_t bytes(const Problem& p, bool backward) {
    if (p.blocks == attention::BlockPattern::none) return 0;
    return (3 + 4 + most_checkers) * sizeof(int) + (backward ? p.listed * sizeof(int4) : 0);
  }

  // Where the tiles of a row begin in the list, and where those of the next one do; or of a column.
  struct List {
    int begin, end;
  };
  // The lists of a head's mask, of all rows and then of all columns.
  __device__ const int* begins(const Problem& p, int head) const {
    const int batch = mask.batch > 1 ? head / p.heads : 0, of_batch = mask.heads > 1 ? head % p.heads : 0;
    return mask.begin + (batch * mask.heads + of_batch) * (rows + columns + 2);
  }
  __device__ List of_row(const Problem& p, int head, int row) const {
    const int* begin = begins(p, head) + row;
    return {begin[0], begin[1]};
  }
  __device__ List of_column(const Problem& p, int head, int column) const {
    const int* begin = begins(p, head) + rows + 1 + column;
    return {begin[0], begin[1]};
  }

  // A tile of a list: which one of its row or column, and if it is cut, its number among the cut ones.
  struct Listed {
    int tile, cut;
  };
  __device__ Listed row_tile(int index) const { return {mask.tiles[2 * index], mask.tiles[2 * index + 1]}; }

  // A cut tile's bits, of its queries or of its keys; null if it is not cut.
  static constexpr int tile_words = BlockMask::tile * BlockMask::words;
  __device__ const uint32_t* bits_of_queries(int cut) const {
    return cut < 0 ? nullptr : mask.bits + size_t(cut) * tile_words;
  }
  __device__ const uint32_t* bits_of_keys(int cut) const {
    return cut < 0 ? nullptr : mask.bits + (size_t(mask.cuts) + cut) * tile_words;
  }
};

// What a kernel is told of lists.
template <class X>
using Lists = std::conditional_t<X::blocks, BlockLists, Sequences>;

// The bits of what a lane has of x[b][n], C fragments with rows 16 b + g and 16 b + 8 + g from `row` of a cut tile on,
// and columns from `column` on: of each of these rows, as many words as there are columns.
template <int blocks, int columns>
struct Bits {
  static constexpr int count = (8 * columns + 31) / 32;
  struct alignas(4 * count) Words {
    uint32_t of[count];
  };
  Words rows[blocks][2];

  __device__ __forceinline__ void load(const uint32_t* tile, int row, int column) {
    tile += (row + threadIdx.x % 32 / 4) * BlockMask::words + column / 32;
#pragma unroll
    for (int b = 0; b < blocks; b++)
      for (int h = 0; h < 2; h++)
        rows[b][h] = *reinterpret_cast<const Words*>(tile + (16 * b + 8 * h) * BlockMask::words);
  }

  // x of a pair that is not seen becomes `hidden`.
  __device__ __forceinline__ void hide(float (&x)[blocks][columns][4], float hidden) const {
#pragma unroll
    for (int b = 0; b < blocks; b++)
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int n = 0; n < columns; n++) {
          const uint32_t pair = rows[b][h].of[n / 4] >> (n % 4 * 8 + threadIdx.x % 4 * 2);
          for (int c = 0; c < 2; c++)
            if (!(pair >> c & 1)) x[b][n][2 * h + c] = hidden;
        }
  }
};

// A step of a backward's block: a tile of queries of a head, whose bits it has, and the turn that the block has at
// adding to its dQ.
struct Turn {
  int number;
  bool last;  // nobody adds after it
};
struct QueryStep {
  int head, tile, cut;
  Turn turn;
};

struct WalkPlace {
  int head, index, part;  // of the heads; of the lists of columns; of the tile, if those of queries are smaller
};

// The way of a block that owns tile `kv_tile` of Bc keys through the lists of its column, of one query head after the
// other that reads them, up to `end_head`. Tiles of queries have Br rows, and come from the first to the last or,
// `down`, from the last to the first.
template <int Bc, int Br, bool down>
struct QueryWalk {
  static constexpr int parts = BlockMask::tile / Br, key_parts = BlockMask::tile / Bc;  // of a tile of the mask
  const BlockLists& lists;
  const Problem& p;
  int kv_tile, end_head;

  using Place = WalkPlace;
  __device__ BlockLists::List list_of(int head) const { return lists.of_column(p, head, kv_tile / key_parts); }
  __device__ Place enter(int head, int index) const {
    return {head, index, down ? parts_of(lists.places[index].x) - 1 : 0};
  }
  __device__ int parts_of(int tile) const { return min(parts, ceil_div(p.seq_q, Br) - tile * parts); }

  // The first place in the lists of these heads, from `head` on.
  __device__ Place first(int head) const {
    for (; head < end_head; head++)
      if (const BlockLists::List list = list_of(head); list.begin < list.end)
        return enter(head, down ? list.end - 1 : list.begin);
    return {end_head, 0, 0};
  }
  __device__ bool exists(const Place& at) const { return at.head < end_head; }
  __device__ Place after(const Place& at) const {
    if (down ? at.part > 0 : at.part + 1 < parts_of(lists.places[at.index].x))
      return {at.head, at.index, at.part + (down ? -1 : 1)};
    const BlockLists::List list = list_of(at.head);
    if (down ? at.index > list.begin : at.index + 1 < list.end) return enter(at.head, at.index + (down ? -1 : 1));
    return first(at.head + 1);
  }
  __device__ QueryStep step(const Place& at) const {
    const int4 place = lists.places[at.index];  // tile, cut, before, behind
    // Where tiles have fewer keys than those of the mask, each has a turn
    const bool last = place.w == 0 && (kv_tile % key_parts == key_parts - 1 || (kv_tile + 1) * Bc >= p.seq_k);
    return {at.head, place.x * parts + at.part, place.y, {place.z * key_parts + kv_tile % key_parts, last}};
  }
  // How many steps there are in the lists of the heads from `head` on.
  __device__ int count(int head) const {
    int all = 0;
    for (; head < end_head; head++) {
      const BlockLists::List list = list_of(head);
      if (list.begin < list.end) all += (list.end - list.begin - 1) * parts + parts_of(lists.places[list.end - 1].x);
    }
    return all;
  }
};

// Looks at the lists, on the stream. For a forward, of which `taken` is what the first number of its workspace becomes;
// for a backward, after `prepare`, whose `stats` become NaN, too, if the lists are wrong. The kernels are in
// 6_blocks.cu.
BlockLists check_lists(const Problem& p, const attention::ForwardArgs& args, int taken, cudaStream_t stream);
BlockLists check_lists(const Problem& p, const attention::BackwardArgs& args, void* workspace, float* stats,
                       int64_t stats_count, cudaStream_t stream);

}  // namespace variants
