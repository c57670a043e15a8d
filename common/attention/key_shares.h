// The list of all tiles of keys, cut into equal shares (chapter 11, 8_even.cu). First in the list are the tiles for the
// first Br rows of a kv head's queries, then those for the next rows, then the next kv head's. A share begins anywhere.
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

// The list of all tiles of keys, and the shares of it.
template <int Br, int Bc>
struct Shares {
  Problem p;
  int row_tiles;        // of a kv head
  int64_t head_length;  // of the part of the list that one kv head has
  int blocks;           // shares

  Shares(const Problem& problem) : p(problem), row_tiles(ceil_div(group_rows(p), Br)), head_length(0) {
    for (int tile = 0; tile < row_tiles; tile++) head_length += keys_of(tile);
    blocks = int(std::min<int64_t>(multiprocessors(), length()));
  }

  __host__ __device__ int64_t length() const { return head_length * p.batch * p.kv_heads; }

  // Tiles of keys that any row of this tile sees: one at least.
  __host__ __device__ int keys_of(int tile) const {
    const int first = tile * Br % p.seq_q, rows = group_rows(p) - tile * Br < Br ? group_rows(p) - tile * Br : Br;
    const int seen = p.visible_keys((first + rows < p.seq_q ? first + rows : p.seq_q) - 1);
    return seen > 0 ? ceil_div(seen, Bc) : 1;
  }

  // Where a block's share begins, and whose share a place in the list is in.
  __host__ __device__ int64_t begin_of(int block) const { return length() * block / blocks; }
  __device__ int owner_of(int64_t at) const { return int(((at + 1) * blocks - 1) / length()); }

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
