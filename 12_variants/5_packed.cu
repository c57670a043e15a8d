// Chapter 12, rung 5, packed: sequences of unequal length, one behind the other, and no padding.
//
// Documents, prompts, images: what a model is trained on and asked has every length. In a tensor [B, H, N, D] N is the
// longest, and the rest is padding, which costs as much as tokens do. Packed, the tensors are [total, H, D], and
// cu_seqlens says where each sequence begins.
//
// What changed since 1_views: a thread block finds its sequence first (packed.h), and moves its tensors to where that
// one begins. Then it solves the sequence's own problem, with its own Nq and Nk, and no line of the loops knows that
// there are others.
//   - Which tile a block takes is read from a list, the longest sequences' tiles first: what starts last is short.
//     list_tiles makes it: a thread for each sequence counts how many tiles of how many sequences come before its own.
//     Nobody sorts, nobody waits for another block, and the host, which launches as many blocks as there can be tiles
//     at most, is told nothing.
//   - Backward: what is kept for each tile of queries has a place for as many tiles as there can be. Those of sequence
//     b begin with number begin / Br + b, so nobody has to count them. And take_turns lets short sequences of similar
//     length take turns in the list, so that fewer blocks of one head wait for one another.
//   - Rows behind the last sequence become zeros if the caller likes: list_tiles, which knows where that is, writes
//   them.
//
// Expected limit: that of 1_views; and a tile is as often half empty as a sequence ends.
#include <algorithm>
#include <climits>

#include "backward.h"
#include "device/limits.h"
#include "filled_results.h"
#include "forward.h"

namespace variants {

extern const attention::Forward views_forward;
extern const attention::Backward views_backward;

namespace {

constexpr int list_threads = 256;
__global__ void __launch_bounds__(list_threads)
    list_tiles(Problem p, Sequences sequences, bool of_queries, int tile_rows, Results results, Count counter) {
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
  int before = 0, rank = 0, count = 0;
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
      if (other.y > own.y || (other.y == own.y && c0 + n < b)) before += other.x, rank++;
    }
    __syncthreads();  // everyone has counted them
  }
  if (b == 0) *sequences.tiles = wrong ? -1 : count;
  if (b == 0 && counter.at) *counter.at = counter.taken;
  watch_step("NaN for all if cu_seqlens are wrong, and zeros behind the last sequence");
  const int64_t thread = int64_t(blockIdx.x) * list_threads + threadIdx.x, threads = int64_t(gridDim.x) * list_threads;
  if (wrong) {
    results.become_nan(thread, threads);
    return;
  }
  results.zero_rest(thread, threads);
  watch_step("the sequence of each tile");
  if (b < p.batch) sequences.first[rank] = before, sequences.ranked[rank] = b;
  for (int lane = 0; lane < 32; lane++) {  // a long sequence has many tiles: all lanes write those of one
    const auto of_lane = [&](int x) { return __shfl_sync(0xffffffff, x, lane); };
    const int tiles = of_lane(own.x), from = of_lane(before), its_rank = of_lane(rank);
    for (int i = threadIdx.x % 32; i < tiles; i += 32)
      sequences.of_tile[from + i] = its_rank, sequences.its_tile[from + i] = i;
  }
}

void launch_list(const Problem& p, const Sequences& sequences, bool of_queries, int tile_rows, const Results& results,
                 Count counter, cudaStream_t stream) {
  // As many rows may be of no sequence as there are: blocks without sequences help to fill them.
  constexpr int at_once = 64 * 8 * list_threads;  // numbers of a result for one block
  const int64_t largest = std::max<int64_t>(p.total_q * int64_t(p.heads), p.total_k * int64_t(p.kv_heads)) * p.head_dim;
  const int blocks =
      std::max<int64_t>(ceil_div(p.batch, list_threads), std::min<int64_t>(multiprocessors(), largest / at_once));
  launch(list_tiles, {unsigned(blocks), list_threads, 0, stream}, p, sequences, of_queries, tile_rows, results,
         counter);
}

// Another order of the list, in which sequences of neighbouring ranks take turns, a tile of each: at most `together`,
// and so many that the tiles of all of them are at most `room`. A thread for each tile of the list.
__global__ void __launch_bounds__(list_threads)
    take_turns(Sequences sequences, int sequences_of_list, int together, int room) {
  const int place = blockIdx.x * list_threads + threadIdx.x, tiles = *sequences.tiles;
  if (place >= tiles) return;
  const auto tiles_of = [&](int rank) {
    return (rank + 1 < sequences_of_list ? sequences.first[rank + 1] : tiles) - sequences.first[rank];
  };
  const int own_rank = sequences.of_tile[place];
  while (together > 1 && together * tiles_of(own_rank / together * together) > room) together /= 2;
  const int begin = own_rank / together * together, end = min(begin + together, sequences_of_list);
  int turn = 0;  // so many tiles of each sequence that has more come before this one
  for (int left = place - sequences.first[begin];;) {
    int having = 0, least = INT_MAX;  // how many sequences have more, and how many tiles the shortest of them has
    for (int rank = begin; rank < end; rank++)
      if (const int own = tiles_of(rank); own > turn) having++, least = min(least, own);
    const int turns = min(left / having, least - turn);
    left -= turns * having, turn += turns;
    if (turn == least) continue;
    int rank = begin;
    while (tiles_of(rank) <= turn || left-- > 0) rank++;
    sequences.of_tile[place] = rank, sequences.its_tile[place] = turn;  // the rank is one of the same sequences
    return;
  }
}

}  // namespace

Sequences list_queries(const Problem& p, const attention::ForwardArgs& args, int tile_rows, int taken,
                       cudaStream_t stream) {
  int* const workspace = static_cast<int*>(args.workspace);
  const Sequences sequences(args.cu_seqlens_q, args.cu_seqlens_k, workspace + 1, p.batch,
                            attention::tiles_of_head(p, p.seq_q, p.total_q, tile_rows));
  const View<uint16_t> o = view<uint16_t>(p, args.o, args.o_strides, p.heads, p.seq_q, p.v_dim());
  const int* const end = args.zero_rest ? args.cu_seqlens_q + p.batch : nullptr;
  launch_list(p, sequences, true, tile_rows,
              {{{o, p.heads, p.heads, p.total_q, p.v_dim(), end}}, {args.lse, p.heads, p.total_q, end}},
              {workspace, taken}, stream);
  return sequences;
}

Sequences list_keys(const Problem& p, const attention::BackwardArgs& args, int* workspace, int tile_rows,
                    cudaStream_t stream) {
  const int most_tiles = attention::tiles_of_head(p, p.seq_k, p.total_k, tile_rows);
  const Sequences sequences(args.cu_seqlens_q, args.cu_seqlens_k, workspace, p.batch, most_tiles);
  const auto of = [&](void* data, const attention::Strides& strides, const int* begin, int heads, int seq, int total,
                      int columns) -> Results::Tensor {
    return {view<uint16_t>(p, data, strides, heads, seq, columns),
            heads,
            heads,
            total,
            columns,
            args.zero_rest ? begin + p.batch : nullptr};
  };
  const int *q = args.cu_seqlens_q, *k = args.cu_seqlens_k;
  const Results results = {{of(args.dq, args.dq_strides, q, p.heads, p.seq_q, p.total_q, p.head_dim),
                            of(args.dk, args.dk_strides, k, p.kv_heads, p.seq_k, p.total_k, p.head_dim),
                            of(args.dv, args.dv_strides, k, p.kv_heads, p.seq_k, p.total_k, p.v_dim())},
                           {args.d_sink, 1, int64_t(p.sink_size())}};
  launch_list(p, sequences, false, tile_rows, results, {}, stream);
  // The blocks of one head wait for one another's additions to dQ: with 64 heads at a time, only two or three of a head
  // run. But all of them read Q and dO and add to dQ again and again, and these should nearly fit into the L2.
  int together = 1;
  while (together < 8 && 2 * together * p.kv_heads <= 64) together *= 2;
  const double tile_bytes = double(tile_rows) * p.heads * p.head_dim * (2 + 2 + 4);
  if (together > 1)
    launch(take_turns, {unsigned(ceil_div(most_tiles, list_threads)), list_threads, 0, stream}, sequences, p.batch,
           together, int(1.3 * l2_bytes() / tile_bytes));
  return sequences;
}

namespace {

void forward_of_sequences(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  (p.packed ? run_forward<Packed> : views_forward.run)(p, args, stream);
}
void backward_of_sequences(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  (p.packed ? run_backward<Packed> : views_backward.run)(p, args, stream);
}

}  // namespace

extern const attention::Forward packed_forward;
extern const attention::Backward packed_backward;
constinit const attention::Forward packed_forward = {.unsupported = not_8_to_128_nor_own_v,
                                                     .workspace_bytes = forward_workspace,
                                                     .run = forward_of_sequences,
                                                     .writes_lse = true,
                                                     .takes = attention::views | attention::own_v | attention::packed};
constinit const attention::Backward packed_backward = {
    .unsupported = backward_not_8_to_128_nor_own_v,
    .workspace_bytes = backward_workspace,
    .run = backward_of_sequences,
    .takes = attention::views | attention::own_v | attention::packed};

extern const attention::Rung packed;
constinit const attention::Rung packed = {
    .name = "packed",
    .idea = "sequences of unequal length without padding: each block looks up which one is its own",
    .forward = attention::padded<packed_forward, attention::next_64_128_192_256>,
    .backward = attention::padded<packed_backward, attention::next_64_128_192_256>};

}  // namespace variants
