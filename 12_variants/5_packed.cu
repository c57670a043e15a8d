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
//     b begin with number begin / Br + b, so nobody has to count them.
//
// Expected limit: that of 1_views; and a tile is as often half empty as a sequence ends.
#include "backward.h"
#include "forward.h"
#include "wrong_lists.h"

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
  if (b == 0 && counter.at) *counter.at = counter.taken;
  if (wrong) {
    watch_step("cu_seqlens are wrong: NaN for all");
    results.become_nan(b, int64_t(gridDim.x) * list_threads);
    return;
  }
  watch_step("the sequence of each tile");
  if (b < p.batch) sequences.first[b] = before;
  for (int lane = 0; lane < 32; lane++) {  // a long sequence has many tiles: all lanes write those of one
    const int tiles = __shfl_sync(0xffffffff, own.x, lane), from = __shfl_sync(0xffffffff, before, lane);
    for (int i = threadIdx.x % 32; i < tiles; i += 32) sequences.of_tile[from + i] = b - int(threadIdx.x % 32) + lane;
  }
}

}  // namespace

Sequences list_queries(const Problem& p, const attention::ForwardArgs& args, int tile_rows, int taken,
                       cudaStream_t stream) {
  int* const workspace = static_cast<int*>(args.workspace);
  const Sequences sequences(args.cu_seqlens_q, args.cu_seqlens_k, workspace + 1, p.batch);
  const View<uint16_t> o = view<uint16_t>(p, args.o, args.o_strides, p.heads, p.seq_q, p.v_dim());
  const Results results = {{{o, p.heads, p.heads, p.total_q, p.v_dim()}}, args.lse, int64_t(p.lse_size())};
  launch(list_tiles, {unsigned(ceil_div(p.batch, list_threads)), list_threads, 0, stream}, p, sequences, true,
         tile_rows, results, Count{workspace, taken});
  return sequences;
}

Sequences list_keys(const Problem& p, const attention::BackwardArgs& args, int* workspace, int tile_rows,
                    cudaStream_t stream) {
  const Sequences sequences(args.cu_seqlens_q, args.cu_seqlens_k, workspace, p.batch);
  const Results results = {{{view<uint16_t>(p, args.dq, args.dq_strides, p.heads, p.seq_q, p.head_dim), p.heads,
                             p.heads, p.total_q, p.head_dim},
                            {view<uint16_t>(p, args.dk, args.dk_strides, p.kv_heads, p.seq_k, p.head_dim), p.kv_heads,
                             p.kv_heads, p.total_k, p.head_dim},
                            {view<uint16_t>(p, args.dv, args.dv_strides, p.kv_heads, p.seq_k, p.v_dim()), p.kv_heads,
                             p.kv_heads, p.total_k, p.v_dim()}},
                           args.d_sink,
                           int64_t(p.sink_size())};
  launch(list_tiles, {unsigned(ceil_div(p.batch, list_threads)), list_threads, 0, stream}, p, sequences, false,
         tile_rows, results, Count());
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
