// Which rows a thread block works on, and in which order: what others call a tile scheduler. Chapter 08, 3_balanced.cu,
// is about the order, and chapter 10, 8_listed.cu, about lists.
//
// The longest tiles come first, of many heads together, so that what starts at the end is short. Under the causal mask
// those are the tiles of a head's last rows, or of its first keys. "Many" heads, not all: tiles of a head read the same
// K and V, and should find them in the L2 cache.
#pragma once

#include "attention/problem.h"
#include "device/launch.h"

namespace attention {

// How many heads start together, a round of them. As many as have room for their K and V in the L2 cache (60 MiB on the
// H200 that was measured, 40 MB on an A100), since the tiles of a short head are far apart in the order. And 32 at
// least: with so few, several tiles of a head run at a time, and go along its keys together.
int heads_in_a_round(const Problem& problem);

// The same, as chapter 10 has it from 19_rounds.cu on, whose header says why: for tiles of queries, and for a backward
// whose blocks own keys.
int heads_that_run_together(const Problem& problem);
int kv_heads_that_share_the_l2(const Problem& problem);

// How many tiles of Br query rows a multiprocessor does one after another until all are done, in tiles of the average
// length. A last round that is not full takes as long as any other if its tiles are as long: without a mask, and nearly
// so for a few queries after many keys. If rows see fewer keys the earlier they are, the short tiles come last.
double rounds_of_tiles(const Problem& problem, int Br);

#if defined(WORKBOOK_SIMT) || defined(__CUDACC__)

struct Tile {
  int head, i0;  // over all batches; its first row
};

// The tile of Br query rows that this thread block owns.
template <int Br>
__device__ Tile tile_of_block(const Problem& p, int round_heads) {
  const int row_tiles = (p.seq_q + Br - 1) / Br;
  const int first_head = blockIdx.x / (round_heads * row_tiles) * round_heads;
  const int index = blockIdx.x - first_head * row_tiles;
  const int heads = min(round_heads, p.batch * p.heads - first_head);  // of this round: the last may be smaller
  return {first_head + index % heads, (row_tiles - 1 - index / heads) * Br};
}

// Tiles of Bc keys up to the last that a row sees: one at least, also where all keys are hidden.
template <int Bc>
__device__ int key_tiles(const Problem& p, int last_row) {
  return max(1, ceil_div(p.visible_keys(last_row), Bc));
}

// All tiles of Br query rows as a list. Without a mask the first rows of a head come first, since the last may be fewer
// than Br.
template <int Br>
struct TileList {
  int heads, round_heads, row_tiles;
  Mask mask;

  // The tile with this index; false if there are not so many.
  __device__ bool get(Tile& tile, int index) const {
    if (index >= heads * row_tiles) return false;
    const int first_head = index / (round_heads * row_tiles) * round_heads, rest = index - first_head * row_tiles;
    const int round = min(round_heads, heads - first_head), place = rest / round;  // the last round may be smaller
    tile = {first_head + rest % round, (mask == Mask::causal ? row_tiles - 1 - place : place) * Br};
    return true;
  }
};
template <int Br>
TileList<Br> all_tiles(const Problem& p, int round_heads) {
  return {p.batch * p.heads, round_heads, ceil_div(p.seq_q, Br), p.mask};
}
template <int Br>
TileList<Br> all_tiles(const Problem& p) {
  return all_tiles<Br>(p, heads_in_a_round(p));
}

// What a thread block of a backward that owns keys works on: a tile of a kv head's keys, and of the query heads that
// read it, all tiles of queries from `start` on.
struct KeyTile {
  int kv_head, j0;
  int first_head, heads;
  int start, head_tiles;
};

// The tile of Bc keys with this index: one round of kv heads after the other, and in each the first keys of every head
// first, which most queries see. Queries come in tiles of Br.
template <int Bc, int Br, class Index>
__device__ KeyTile key_tile(const Problem& p, int round_heads, Index index) {
  const int kv_heads = p.batch * p.kv_heads, kv_tiles = ceil_div(p.seq_k, Bc), heads = p.heads / p.kv_heads;
  const int first_kv_head = index / (round_heads * kv_tiles) * round_heads;
  const int rest = index - first_kv_head * kv_tiles;
  const int round = min(round_heads, kv_heads - first_kv_head);  // the last may be smaller
  const int kv_head = first_kv_head + rest % round, j0 = rest / round * Bc;
  return {kv_head, j0, kv_head * heads, heads, p.first_query(j0) / Br, ceil_div(p.seq_q, Br)};
}

// In which order the block of a KeyTile goes through the tiles of queries of a head, and which turn it has at adding
// its part of their dQ. M tiles of queries, C blocks, each with a tile of keys.
//
// If not cyclic, the blocks come to a tile of queries at the same time, and add in the order of their keys. So block c
// is c turns late. If cyclic, block c begins c M / C tiles later, and goes round: each is due at a tile of queries at a
// time of its own, and they add in the order in which they are due. All blocks must have all tiles, so there is no
// mask, and all must run at the same time: each waits for some that are before it, and for some that are behind it.
template <int Bc, bool cyclic>
struct QueryOrder {
  int kv_tile, kv_tiles, head_tiles;

  __device__ QueryOrder(const Problem& p, KeyTile work)
      : kv_tile(work.j0 / Bc), kv_tiles(ceil_div(p.seq_k, Bc)), head_tiles(work.head_tiles) {}

  // The tile at a step of the block. Steps are counted down from M - 1.
  __device__ int tile(int step) const {
    if constexpr (!cyclic) return step;
    const int i = step + kv_tile * head_tiles / kv_tiles;
    return i < head_tiles ? i : i - head_tiles;
  }
  __device__ int turn(int tile) const {
    if constexpr (!cyclic) return kv_tile;
    const int first = ceil_div((tile + 1) * kv_tiles, head_tiles);  // the block that comes to it first; C is block 0
    return kv_tile < first ? kv_tile - first + kv_tiles : kv_tile - first;
  }
  // Whether that is the last turn, at a tile of Br queries.
  template <int Br>
  __device__ bool is_last(const Problem& p, int tile) const {
    return cyclic ? turn(tile) == kv_tiles - 1 : (kv_tile + 1) * Bc >= p.visible_keys(tile * Br + Br - 1);
  }
};

#endif

}  // namespace attention
