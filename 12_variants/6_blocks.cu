// Chapter 12, rung 6, blocks: which pairs see one another is a list of tiles.
//
// Documents, a prompt that all tokens see, windows with gaps: masks of models have more shapes than a diagonal. A block
// mask says for each row of tiles of 128 queries which tiles of 128 keys have any pair that is seen. All others are
// left out. Of those that are listed most are seen as a whole, and the others have a bit for each pair.
//
// What changed since 1_views: a loop does not count keys from one end to the other, it reads which tile comes next.
//   - Forward: the list of the block's row. Only of a tile that is cut, bits are read.
//   - Backward: the same lists by columns, and once more the bits, so that a thread finds those of its key in a word. A
//     tile's turn at adding to dQ is its place in its row's list, and the last of the row converts.
//   - Rows without a tile: O = 0, LSE = -inf. Their dQ is written by nobody who owns keys, so conclude() writes zeros.
//   - check_tiles looks at all lists before: if they rise, if columns have what rows have, and the bits of both are the
//     same. It finds each tile of a column in its row, and keeps the place, the turn.
//
// Expected limit: that of 1_views, of as many tiles as are listed; a cut tile costs as much as a whole one, and its
// bits.
#include "backward.h"
#include "blocks.h"
#include "filled_results.h"
#include "forward.h"

namespace variants {

extern const attention::Forward views_forward;
extern const attention::Backward views_backward;

namespace {

constexpr int check_threads = 256, lanes = 32;
static_assert(check_threads == most_checkers);  // a block of conclude() reads what each has found

// A warp takes one list after the other, and then squares of 32 pairs each way of the bits.
__global__ void __launch_bounds__(check_threads) check_tiles(BlockLists lists, bool with_columns) {
  const BlockMask& mask = lists.mask;
  const int warp = (blockIdx.x * check_threads + threadIdx.x) / lanes, warps = gridDim.x * (check_threads / lanes);
  const int lane = threadIdx.x % lanes;
  const int masks = mask.batch * mask.heads, stride = lists.rows + lists.columns + 2;
  bool wrong = false;
  watch_step("do the lists rise, and has each row what its columns have?");
  const int of_a_mask = lists.rows + (with_columns ? lists.columns : 0);
  for (int n = warp; n < masks * of_a_mask; n += warps) {
    const int m = n / of_a_mask;
    const bool is_column = n % of_a_mask >= lists.rows;
    const int number = is_column ? n % of_a_mask - lists.rows : n % of_a_mask;
    const int count = is_column ? lists.columns : lists.rows, others = is_column ? lists.rows : lists.columns;
    const int* const row_begins = mask.begin + m * stride;
    const int* const begin = row_begins + (is_column ? lists.rows + 1 : 0) + number;
    const int first = begin[0], end = begin[1];
    if (number == 0) wrong |= first != (m == 0 ? 0 : begin[count - stride]);
    if (number == count - 1 && m == masks - 1) wrong |= end != mask.listed;
    if (first < 0 || end < first || end > mask.listed) wrong = true;
    if (wrong) break;
    for (int t = first + lane; t < end; t += lanes) {
      const int index = is_column ? mask.listed + t : t;
      const BlockLists::Listed listed = lists.row_tile(index);
      wrong |= listed.tile < 0 || listed.tile >= others || listed.cut < -1 || listed.cut >= mask.cuts ||
               (t > first && lists.row_tile(index - 1).tile >= listed.tile);
      if (wrong || !is_column) continue;
      const int row = row_begins[listed.tile], row_end = row_begins[listed.tile + 1];
      if (row < 0 || row >= row_end || row_end > mask.listed) {
        wrong = true;
        continue;
      }
      int at = row;  // of the row's list, which rises: the last one that is not above this column
      for (int stop = row_end; stop - at > 1;) {
        const int middle = at + (stop - at) / 2;
        (lists.row_tile(middle).tile <= number ? at : stop) = middle;
      }
      const BlockLists::Listed found = lists.row_tile(at);
      wrong |= found.tile != number || found.cut != listed.cut;
      lists.places[t] = {listed.tile, listed.cut, at - row, row_end - 1 - at};
    }
  }
  wrong = __any_sync(0xffffffff, wrong);
  watch_step("are the bits of keys those of queries?");
  constexpr int squares = BlockMask::words * BlockMask::words;
  for (int n = warp; n < mask.cuts * squares && with_columns && !wrong; n += warps) {
    const int cut = n / squares, of_queries = n % squares / BlockMask::words, of_keys = n % BlockMask::words;
    const uint32_t query = lists.bits_of_queries(cut)[(of_queries * 32 + lane) * BlockMask::words + of_keys];
    const uint32_t key = lists.bits_of_keys(cut)[(of_keys * 32 + lane) * BlockMask::words + of_queries];
    for (int k = 0; k < 32; k++) {
      const uint32_t of_key = __ballot_sync(0xffffffff, query >> k & 1);
      if (k == lane) wrong |= of_key != key;
    }
    wrong = __any_sync(0xffffffff, wrong);
  }
  const bool any = __syncthreads_or(wrong);
  if (threadIdx.x == 0) lists.parts[blockIdx.x] = any;
}

// If some part of the lists is wrong, NaN for all. Else, of a backward, zeros in dQ, the first of the results, where a
// row has no tile.
__global__ void __launch_bounds__(check_threads)
    conclude(Problem p, BlockLists lists, Results results, bool of_gradients, Count counter) {
  const bool wrong = __syncthreads_or(int(threadIdx.x) < lists.checkers && lists.parts[threadIdx.x]);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *lists.wrong = wrong;
    if (counter.at) *counter.at = counter.taken;
  }
  if (wrong) {
    watch_step("the lists are wrong: NaN for all");
    results.become_nan(int64_t(blockIdx.x) * check_threads + threadIdx.x, int64_t(gridDim.x) * check_threads);
    return;
  }
  if (!of_gradients) return;
  watch_step("dQ = 0 where a row has no tile");
  const Results::Tensor& dq = results.tensors[0];
  for (int n = blockIdx.x; n < dq.all_heads * lists.rows; n += gridDim.x) {
    const int head = n / lists.rows, row = n % lists.rows;
    const BlockLists::List list = lists.of_row(p, head, row);
    if (list.begin < list.end) continue;
    const int pieces = dq.columns / 8, rows = min(BlockMask::tile, dq.rows - row * BlockMask::tile);
    for (int i = threadIdx.x; i < rows * pieces; i += check_threads)
      *reinterpret_cast<uint4*>(dq.data.at_row(dq.data.of_head(head, dq.heads) + i % pieces,
                                               row * BlockMask::tile + i / pieces)) = make_uint4(0, 0, 0, 0);
  }
}

void launch_checks(const Problem& p, BlockLists& lists, const Results& results, bool of_gradients, Count counter,
                   cudaStream_t stream) {
  const int masks = lists.mask.batch * lists.mask.heads, squares = BlockMask::words * BlockMask::words;
  const int64_t all = int64_t(masks) * (lists.rows + of_gradients * lists.columns) +
                      int64_t(of_gradients) * lists.mask.cuts * squares;  // what a warp takes at a time
  constexpr int warps = check_threads / lanes;
  lists.checkers = int(std::min<int64_t>(most_checkers, (all + warps - 1) / warps));
  launch(check_tiles, {unsigned(lists.checkers), check_threads, 0, stream}, lists, of_gradients);
  const int rows = of_gradients ? p.batch * p.heads * lists.rows : 1;
  launch(conclude, {unsigned(std::min(most_checkers, rows)), check_threads, 0, stream}, p, lists, results, of_gradients,
         counter);
}

}  // namespace

BlockLists check_lists(const Problem& p, const attention::ForwardArgs& args, int taken, cudaStream_t stream) {
  int* const workspace = static_cast<int*>(args.workspace);
  BlockLists lists(p, args.blocks, workspace + 1);
  const View<uint16_t> o = view<uint16_t>(p, args.o, args.o_strides, p.heads, p.seq_q, p.v_dim());
  launch_checks(p, lists, {{{o, p.heads, p.batch * p.heads, p.seq_q, p.v_dim()}}, {args.lse, 1, int64_t(p.lse_size())}},
                false, {workspace, taken}, stream);
  return lists;
}

BlockLists check_lists(const Problem& p, const attention::BackwardArgs& args, void* workspace, float* stats,
                       int64_t stats_count, cudaStream_t stream) {
  BlockLists lists(p, args.blocks, workspace);
  const auto of = [&](void* data, const attention::Strides& strides, int heads, int rows, int D) -> Results::Tensor {
    return {view<uint16_t>(p, data, strides, heads, rows, D), heads, p.batch * heads, rows, D};
  };
  launch_checks(p, lists,
                {{of(args.dq, args.dq_strides, p.heads, p.seq_q, p.head_dim),
                  of(args.dk, args.dk_strides, p.kv_heads, p.seq_k, p.head_dim),
                  of(args.dv, args.dv_strides, p.kv_heads, p.seq_k, p.v_dim())},
                 {stats, 1, stats_count}},
                true, {}, stream);
  return lists;
}

namespace {

void forward_of_blocks(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  (p.blocks == attention::BlockPattern::none ? views_forward.run : run_forward<Listed>)(p, args, stream);
}
void backward_of_blocks(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  (p.blocks == attention::BlockPattern::none ? views_backward.run : run_backward<Listed>)(p, args, stream);
}

constexpr unsigned with_blocks = attention::views | attention::sink | attention::blocks;

}  // namespace

extern const attention::Forward blocks_forward;
extern const attention::Backward blocks_backward;
constinit const attention::Forward blocks_forward = {.unsupported = not_8_to_128_nor_own_v,
                                                     .workspace_bytes = forward_workspace,
                                                     .run = forward_of_blocks,
                                                     .writes_lse = true,
                                                     .takes = with_blocks};
constinit const attention::Backward blocks_backward = {.unsupported = backward_not_8_to_128_nor_own_v,
                                                       .workspace_bytes = backward_workspace,
                                                       .run = backward_of_blocks,
                                                       .takes = with_blocks};

extern const attention::Rung blocks;
constinit const attention::Rung blocks = {
    .name = "blocks",
    .idea = "which tiles are computed stands in a list, and bits say what is seen of those that are cut",
    .forward = attention::padded<blocks_forward, attention::next_64_128_192_256>,
    .backward = attention::padded<blocks_backward, attention::next_64_128_192_256>};

}  // namespace variants
