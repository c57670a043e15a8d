// Packed sequences: who finds which rows. Sequences of 1 and of 100,000 tokens lie one behind the other, and only the
// device knows where each begins. So a small kernel makes a list of tiles first (5_packed.cu), and a thread block looks
// up which sequence its tile is of. From there on it solves that sequence's problem, as if there were no other: alone()
// cuts the problem down to it.
//
// If cu_seqlens fall, do not begin with 0 or end behind the tensors, then no tile is listed, and all results become
// NaN.
#pragma once

#include "attention/backward_workspace.h"
#include "extras.h"

namespace variants {

// One of them: where its rows begin, and how many there are.
struct Sequence {
  int index, begin_q, begin_k, seq_q, seq_k;
};

// Its problem, as if it were alone.
__device__ inline Problem alone(Problem p, const Sequence& sequence) {
  p.batch = 1;
  p.seq_q = sequence.seq_q, p.seq_k = sequence.seq_k;
  return p;
}

// What kernels know of packed sequences; of any other problem it is empty.
struct Sequences {
  const int* begin_q = nullptr;  // [B + 1], cu_seqlens
  const int* begin_k = nullptr;  // [B + 1]
  // The list, in the workspace. Sequences are ranked, the one whose tiles take longest first.
  int* tiles = nullptr;     // [1]: how many it has; -1 if cu_seqlens are wrong
  int* first = nullptr;     // [B]: how many tiles come before those of a rank
  int* ranked = nullptr;    // [B]: its sequence
  int* of_tile = nullptr;   // [most_tiles]: the rank of each
  int* its_tile = nullptr;  // [most_tiles]: which of the sequence's tiles it is

  Sequences() = default;
  Sequences(const int* begin_q, const int* begin_k, void* workspace, int batch, int most_tiles)
      : begin_q(begin_q),
        begin_k(begin_k),
        tiles(static_cast<int*>(workspace)),
        first(tiles + 1),
        ranked(first + batch),
        of_tile(ranked + batch),
        its_tile(of_tile + most_tiles) {}
  static size_t bytes(const Problem& p, int most_tiles) {
    return p.packed ? (1 + 2 * (size_t(p.batch) + most_tiles)) * sizeof(int) : 0;
  }

  // The sequence that work number `index` is of, with `heads` to a tile, and which of the sequence's work it is. -1:
  // there is not so much work.
  struct Found {
    int b, index;
  };
  __device__ Found find(int index, int heads) const {
    const int tile = index / heads;
    if (tile >= *tiles) return {-1, 0};
    return {ranked[of_tile[tile]], its_tile[tile] * heads + index % heads};
  }

  __device__ Sequence of(int b) const {
    const int q = begin_q[b], k = begin_k[b];
    return {b, q, k, begin_q[b + 1] - q, begin_k[b + 1] - k};
  }
};

// Makes the list, of tiles of so many rows, on the stream: for a forward of queries, behind the first number of its
// workspace, which becomes `taken`; for a backward of keys, where it says. The kernel is in 5_packed.cu.
Sequences list_queries(const Problem& p, const attention::ForwardArgs& args, int tile_rows, int taken,
                       cudaStream_t stream);
Sequences list_keys(const Problem& p, const attention::BackwardArgs& args, int* workspace, int tile_rows,
                    cudaStream_t stream);

// Of the tiles of all heads of packed sequences, counted as first_tile() does, the sequence that this one is of; if it
// is of none, the one before.
__device__ inline int sequence_at(const int* begin, int batch, int tile, int tile_rows) {
  int b = 0;
  for (int end = batch; end - b > 1;) {
    const int middle = b + (end - b) / 2;
    (attention::first_tile(begin[middle], middle, tile_rows) <= tile ? b : end) = middle;
  }
  return b;
}

}  // namespace variants
