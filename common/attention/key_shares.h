// The list of all tiles of keys, in equal shares (chapter 11, 8_even.cu). First in the list are the tiles for the first
// Br rows of a kv head's queries, then those for the next rows, then the next kv head's.
#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/key_parts.h"

namespace key_parts {

// A tile of Br rows of the queries of a kv head, from r0 on, and its tiles of keys from `begin` to `end`, of `all`.
struct Piece {
  int kv_head, r0, begin, end, all;

  __device__ bool whole() const { return end - begin == all; }
};

// The shares of the list, one for each block. The first rows of the list are given out whole, a tile of rows to each
// block in turn, as long as something is left for every block: so all blocks begin with the first keys, and those of a
// kv head find them in the L2 cache. The rest of the list is cut so that all shares are equal, wherever the cuts fall:
// between two keys of a row, too.
template <int Br, int Bc>
struct Shares {
  Problem p;
  int row_tiles;        // of a kv head
  int64_t head_length;  // of the part of the list that one kv head has
  int blocks;           // shares
  int rounds;           // whole tiles of rows that each block gets

  // Where in the list the rest of a block's share begins; and where the list ends. An argument of its own, the last:
  // beside so large an array, nvcc loads the scale between two products, and the loop takes a tenth longer.
  struct Cuts {
    static constexpr int most_blocks = 256;
    int64_t at[most_blocks + 1];
  };

  Shares(const Problem& problem) : p(problem), row_tiles(ceil_div(group_rows(p), Br)), head_length(0) {
    int longest = 0;
    for (int tile = 0; tile < row_tiles; tile++)
      head_length += keys_of(tile), longest = std::max(longest, keys_of(tile));
    blocks = int(std::min<int64_t>({multiprocessors(), Cuts::most_blocks, length()}));
    rounds = int((length() / blocks - 1) / longest);
  }

  Cuts cuts() const {
    Cuts cuts;
    int64_t given = 0;  // what is given out whole; then, of it, what this block and those after it have
    for (int tile = 0; tile < rounds * blocks; tile++) given += keys_of(tile % row_tiles);
    for (int block = 0; block < blocks; block++) {
      cuts.at[block] = length() * block / blocks + given;
      for (int round = 0; round < rounds; round++) given -= keys_of((round * blocks + block) % row_tiles);
    }
    cuts.at[blocks] = length();
    return cuts;
  }

  __host__ __device__ int64_t length() const { return head_length * p.batch * p.kv_heads; }

  // Tiles of keys that any row of this tile sees: one at least.
  __host__ __device__ int keys_of(int tile) const {
    const int first = tile * Br % p.seq_q, rows = group_rows(p) - tile * Br < Br ? group_rows(p) - tile * Br : Br;
    const int seen = p.visible_keys((first + rows < p.seq_q ? first + rows : p.seq_q) - 1);
    return seen > 0 ? ceil_div(seen, Bc) : 1;
  }

  // The tile of rows that a block gets whole in this round.
  __device__ Piece whole(int block, int round) const {
    const int index = round * blocks + block, tile = index % row_tiles, all = keys_of(tile);
    return {index / row_tiles, tile * Br, 0, all, all};
  }

  // The piece that begins at `at`, in a share that ends at `end`; false if that is the end.
  __device__ bool get(Piece& piece, int64_t at, int64_t end) const {
    if (at >= end) return false;
    piece.kv_head = int(at / head_length);
    int64_t rest = at % head_length;
    int tile = 0;
    if (p.mask == attention::Mask::none) tile = int(rest / keys_of(0)), rest %= keys_of(0);
    while (rest >= keys_of(tile)) rest -= keys_of(tile++);
    piece.r0 = tile * Br, piece.begin = int(rest), piece.all = keys_of(tile);
    piece.end = int(end - at < piece.all - rest ? rest + (end - at) : piece.all);
    return true;
  }
};

}  // namespace key_parts
