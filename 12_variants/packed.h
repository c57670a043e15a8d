// Packed sequences: who finds which rows. Sequences of 1 and of 100,000 tokens lie one behind the other, and only the
// device knows where each begins. So a thread block asks the device: a small kernel, list_tiles, makes a list of tiles
// first, and a block looks up which sequence its tile is of. From there on it solves that sequence's problem, as if
// there were no other: alone() cuts the problem down to it.
//
//   list_tiles   a thread per sequence: how many tiles of how many sequences come before its own. The sequences come in
//                the order of what one of their tiles takes, longest first; all heads of a tile stand together.
//
// A thread counts all sequences for that, by way of shared memory: n threads add n numbers. Nobody sorts, nobody waits
// for another block, and the host, which launches as many blocks as there can be tiles at most, is told nothing.
//
// If cu_seqlens fall, do not begin with 0 or end behind the tensors, then list_tiles lists no tile, and all results
// become NaN.
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
  // The list, in the workspace
  int* tiles = nullptr;    // [1]: how many it has; -1 if cu_seqlens are wrong
  int* first = nullptr;    // [B]: how many come before those of sequence b
  int* of_tile = nullptr;  // [most_tiles]: the sequence of each

  Sequences() = default;
  Sequences(const int* begin_q, const int* begin_k, void* workspace, int batch)
      : begin_q(begin_q),
        begin_k(begin_k),
        tiles(static_cast<int*>(workspace)),
        first(tiles + 1),
        of_tile(first + batch) {}
  static size_t bytes(const Problem& p, int most_tiles) {
    return p.packed ? (1 + size_t(p.batch) + most_tiles) * sizeof(int) : 0;
  }

  // The sequence that work number `index` is of, with `heads` to a tile, and which of the sequence's work it is. -1:
  // there is not so much work.
  struct Found {
    int b, index;
  };
  __device__ Found find(int index, int heads) const {
    const int tile = index / heads;
    if (tile >= *tiles) return {-1, 0};
    const int b = of_tile[tile];
    return {b, index - first[b] * heads};
  }

  __device__ Sequence of(int b) const {
    const int q = begin_q[b], k = begin_k[b];
    return {b, q, k, begin_q[b + 1] - q, begin_k[b + 1] - k};
  }
};

// What list_tiles writes if cu_seqlens are wrong: three tensors, and one number for each query of each head, or each
// head.
struct Results {
  struct Tensor {
    View<uint16_t> data;
    int heads, rows, columns;
  };
  Tensor tensors[3];
  float* numbers;
  int64_t count;
};

constexpr int list_threads = 256;
static __global__ void __launch_bounds__(list_threads)
    list_tiles(Problem p, Sequences sequences, bool of_queries, int tile_rows, Results results) {
  __shared__ int2 all[list_threads];  // of each sequence its tiles, and how long one of them takes
  const auto length = [](const int* begin, int b) { return begin[b + 1] - begin[b]; };
  const auto own_of = [&](int b) -> int2 {
    const int q = length(sequences.begin_q, b), k = length(sequences.begin_k, b);
    return {ceil_div(of_queries ? q : k, tile_rows), of_queries ? k : q};
  };
  const auto is_wrong = [&](const int* begin, int b, int total) {
    return begin[b + 1] < begin[b] || begin[b + 1] > total || (b == 0 && begin[0] != 0);
  };
  const int b = blockIdx.x * list_threads + threadIdx.x;
  const int2 own = b < p.batch ? own_of(b) : int2{0, 0};
  int before = 0, count = 0;
  bool wrong = false;
  watch_step("how many tiles come before each sequence's");
  for (int c0 = 0; c0 < p.batch && !wrong; c0 += list_threads) {
    const int c = c0 + threadIdx.x;
    if (c < p.batch) {
      all[threadIdx.x] = own_of(c);
      wrong = is_wrong(sequences.begin_q, c, p.total_q) || is_wrong(sequences.begin_k, c, p.total_k);
    }
    wrong = __syncthreads_or(wrong);  // and these sequences are there
    for (int n = 0; n < min(list_threads, p.batch - c0); n++) {
      const int2 other = all[n];
      count += other.x;
      if (other.y > own.y || (other.y == own.y && c0 + n < b)) before += other.x;
    }
    __syncthreads();  // everyone has counted them
  }
  if (b == 0) *sequences.tiles = wrong ? -1 : count;
  if (wrong) {
    watch_step("cu_seqlens are wrong: NaN for all");
    const int64_t thread = int64_t(blockIdx.x) * list_threads + threadIdx.x,
                  threads = int64_t(gridDim.x) * list_threads;
    constexpr unsigned nan = 0xffffffff;  // of fp32, and twice of fp16 or bf16
    for (const Results::Tensor& to : results.tensors) {
      const int pieces = to.columns / 8;
      for (int64_t i = thread; i < int64_t(to.rows) * to.heads * pieces; i += threads) {
        const int row = i / pieces / to.heads, head = i / pieces % to.heads;
        *reinterpret_cast<uint4*>(to.data.at_row(to.data.of_head(head, to.heads) + i % pieces, row)) =
            make_uint4(nan, nan, nan, nan);
      }
    }
    for (int64_t i = thread; i < results.count; i += threads) results.numbers[i] = __uint_as_float(nan);
    return;
  }
  watch_step("the sequence of each tile");
  if (b < p.batch) sequences.first[b] = before;
  for (int lane = 0; lane < 32; lane++) {  // a long sequence has many tiles: all lanes write those of one
    const int tiles = __shfl_sync(0xffffffff, own.x, lane), from = __shfl_sync(0xffffffff, before, lane);
    for (int i = threadIdx.x % 32; i < tiles; i += 32) sequences.of_tile[from + i] = b - int(threadIdx.x % 32) + lane;
  }
}

// The list of a forward, whose workspace begins with a number of its own.
inline Sequences list_queries(const Problem& p, const attention::ForwardArgs& args, int tile_rows,
                              cudaStream_t stream) {
  const Sequences sequences(args.cu_seqlens_q, args.cu_seqlens_k, static_cast<int*>(args.workspace) + 1, p.batch);
  const View<uint16_t> o = view<uint16_t>(p, args.o, args.o_strides, p.heads, p.seq_q, p.v_dim());
  const Results results = {{{o, p.heads, p.total_q, p.v_dim()}}, args.lse, int64_t(p.lse_size())};
  launch(list_tiles, {unsigned(ceil_div(p.batch, list_threads)), list_threads, 0, stream}, p, sequences, true,
         tile_rows, results);
  return sequences;
}

// The list of a backward, which lies where it says.
inline Sequences list_keys(const Problem& p, const attention::BackwardArgs& args, int* workspace, int tile_rows,
                           cudaStream_t stream) {
  const Sequences sequences(args.cu_seqlens_q, args.cu_seqlens_k, workspace, p.batch);
  const Results results = {
      {{view<uint16_t>(p, args.dq, args.dq_strides, p.heads, p.seq_q, p.head_dim), p.heads, p.total_q, p.head_dim},
       {view<uint16_t>(p, args.dk, args.dk_strides, p.kv_heads, p.seq_k, p.head_dim), p.kv_heads, p.total_k,
        p.head_dim},
       {view<uint16_t>(p, args.dv, args.dv_strides, p.kv_heads, p.seq_k, p.v_dim()), p.kv_heads, p.total_k, p.v_dim()}},
      args.d_sink,
      int64_t(p.sink_size())};
  launch(list_tiles, {unsigned(ceil_div(p.batch, list_threads)), list_threads, 0, stream}, p, sequences, false,
         tile_rows, results);
  return sequences;
}

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
