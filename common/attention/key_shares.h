// The list of all tiles of keys, in shares (chapter 11, 8_even.cu). First in the list are the tiles for the first
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
// kv head find them in the L2 cache. The rest of the list is cut into equal parts, wherever the cuts fall: between two
// keys of a row, too. Under the causal mask whole tiles are not all as long, and so neither are the shares.
template <int Br, int Bc>
struct Shares {
  Problem p;
  int row_tiles;        // of a kv head
  int64_t head_length;  // of the part of the list that one kv head has
  int blocks;           // shares
  int rounds;           // whole tiles of rows that each block gets
  int64_t given_out;    // of the list, as whole tiles

  Shares(const Problem& problem) : p(problem), row_tiles(ceil_div(group_rows(p), Br)), head_length(0) {
    int longest = 0;
    for (int tile = 0; tile < row_tiles; tile++)
      head_length += keys_of(tile), longest = std::max(longest, keys_of(tile));
    blocks = int(std::min<int64_t>(multiprocessors(), length()));
    rounds = int((length() / blocks - 1) / longest);
    given_out = rounds * blocks / row_tiles * head_length;
    for (int tile = 0; tile < rounds * blocks % row_tiles; tile++) given_out += keys_of(tile);
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

  // Where a block's part of the rest begins, and whose part a place in the list is in.
  __host__ __device__ int64_t begin_of(int block) const { return given_out + (length() - given_out) * block / blocks; }
  __device__ int owner_of(int64_t at) const {
    return int(((at - given_out + 1) * blocks - 1) / (length() - given_out));
  }

  // The piece that begins at `at`, in a part that ends at `end`; false if that is the end.
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
