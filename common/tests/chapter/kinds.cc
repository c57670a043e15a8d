#include "tests/chapter/kinds.h"

#include <algorithm>
#include <climits>
#include <functional>
#include <iterator>

#include "device/cuda_error.h"
#include "device/trace.h"
#include "harness/kernel_process.h"
#include "harness/verdict.h"
#include "tests/chapter/little_shared_memory.h"
#include "tests/chapter/non_finite.h"
#include "tests/chapter/references.h"

namespace chapter_suite {
namespace {

using attention::BlockPattern;
using attention::DType;
using attention::Forward;
using attention::Mask;
using attention::Pass;
using attention::Problem;
using harness::InputKind;

constexpr Mask masks[] = {Mask::none, Mask::causal};
constexpr DType dtypes[] = {DType::fp16, DType::bf16};
constexpr int head_dims[] = {64, 128};

// A kind from a function of a forward or a backward, and a case.
template <class Test>
Kind kind(const char* name, const char* looks_for, std::vector<Case> cases, Test wrong_with) {
  return {name, looks_for, std::move(cases), wrong_with, wrong_with};
}

// A kind that solves its cases.
Kind solving(const char* name, const char* looks_for, std::vector<Case> cases, size_t guard = usual_guard,
             Judged judged = Judged::elements) {
  return kind(name, looks_for, std::move(cases),
              [=](const auto& pass, const Case& c) { return solve(pass, c, guard, judged); });
}

// The same about extras, and once more where blocks have little shared memory: there a chapter may have another loop.
Kind solving_with_extras(const char* name, const char* looks_for, std::vector<Case> cases) {
  return kind(name, looks_for, std::move(cases), [](const auto& pass, const Case& c) {
    if (const std::string wrong = solve(pass, c); !wrong.empty() || !attention::unsupported(pass, c.problem).empty())
      return wrong;
    const LittleSharedMemory little;
    if (!attention::unsupported(pass, c.problem).empty()) return std::string();  // made for GPUs that have more
    const std::string wrong = solve(pass, c);
    return wrong.empty() ? wrong : "where blocks have little shared memory, " + wrong;
  });
}

// Lengths on both sides of the edges of the chapters' tiles: 8 and 16 rows (mma), 32, 64, 128 and, in chapter 10, 192
// query rows; 16 to 64, 80 (D = 128) and 128 keys. Where both head dims have such a tile the pair runs with both; the
// dtype alternates. Long rows meet few keys and the other way round, which is quick.
std::vector<Case> around_the_edges_of_tiles() {
  enum HeadDims { both, only_64, only_128 };
  struct Pair {
    int seq_q, seq_k;
    HeadDims head_dims;
    const char* because;
  };
  constexpr Pair unmasked[] = {
      {1, 257, both, "one query; one key after two tiles of 128 and four of 64; more than three buffers of 80 keys"},
      {2, 161, only_128, "one key after two tiles of 80"},
      {7, 129, both, "fewer queries than an mma has rows; one key after a tile of 128"},
      {31, 159, only_128, "one query short of 32; one key short of two tiles of 80, and of five of 32"},
      {63, 128, both, "one query short of 64; whole tiles of keys"},
      {64, 64, both, "one whole tile both ways"},
      {65, 127, both, "one query after a tile of 64; one key short of 128"},
      {127, 80, only_128, "one query short of 128; a whole tile of 80 keys, a quarter of the second tile of 64"},
      {128, 65, both, "whole tiles of queries; one key after 64"},
      {129, 63, both, "one query after a tile of 128; one key short of 64"},
      {191, 31, both, "one query short of chapter 10's 192; one key short of 32"},
      {192, 7, both, "192 whole query rows; fewer keys than an mma has columns"},
      {193, 2, only_64, "one query after 192; two keys"},
      {193, 257, only_128, "the same, and each consumer of chapter 10 sees more keys than its buffers hold"},
      {257, 33, both, "row 256, where a byte ends; one key after 32"},
  };
  // Where the diagonal begins and ends decides what is left out: Nk - Nq + 1 keys are seen by the first row; of more
  // rows than keys, the first Nq - Nk see none.
  constexpr Pair causal[] = {
      {1, 1, both, "a single score"},
      {2, 65, both, "the first row sees a whole tile of 64 keys, the second one key more"},
      {2, 81, only_128, "the same, of 80 keys"},
      {7, 159, only_128, "the diagonal ends one key short of two tiles of 80"},
      {31, 127, both, "the diagonal starts in one tile of keys and ends in the next"},
      {63, 63, both, "square, one short of a tile"},
      {64, 161, only_128, "the diagonal of a whole tile of rows starts inside of a tile of keys"},
      {65, 192, both, "the first row sees whole tiles of 64 and 128, the last one all keys"},
      {127, 64, both, "63 rows see no key: one short of a tile"},
      {128, 64, both, "64 rows see no key: a whole tile"},
      {129, 64, both, "65 rows see no key: one after a tile"},
      {128, 128, both, "square, whole tiles: the diagonal runs from corner to corner"},
      {129, 129, both, "square, one after a tile both ways"},
      {191, 64, both, "127 rows see no key"},
      {192, 64, both, "128 rows see no key"},
      {193, 64, both, "129 rows see no key"},
      {257, 33, only_64, "row 256 sees keys, row 0 none"},
  };
  std::vector<Case> cases;
  const auto add = [&](const auto& pairs, Mask mask) {
    for (size_t i = 0; i < std::size(pairs); i++)
      for (const int head_dim : head_dims) {
        const Pair& pair = pairs[i];
        if (pair.head_dims == (head_dim == 64 ? only_128 : only_64)) continue;
        // Two heads of a group: where rows fill their tiles the second one starts at once, and elsewhere it has what is
        // written behind the rows of the first.
        const int heads = pair.seq_q % 64 == 0 || i % 4 == 2 ? 2 : 1;
        const DType dtype = dtypes[(i / 2 + (mask == Mask::causal) + (head_dim == 128)) % 2];
        cases.push_back(make({1, heads, 1, pair.seq_q, pair.seq_k, head_dim}, dtype, mask).for_(pair.because));
      }
  };
  add(unmasked, Mask::none);
  add(causal, Mask::causal);
  return cases;
}

// Every kind of input that is not the usual one, where tiles of 64 are full and, with the other head dim, mask and
// dtype, where they are ragged.
std::vector<Case> unusual_inputs() {
  std::vector<Case> cases;
  int turn = 0;
  const auto add = [&](InputKind inputs, const char* because) {
    cases.push_back(make({1, 1, 1, 64, 192, 64}, dtypes[turn], masks[turn], inputs).for_(because));
    cases.push_back(make({1, 1, 1, 71, 201, 128}, dtypes[1 - turn], masks[1 - turn], inputs).for_(because));
    turn = 1 - turn;
  };
  add(InputKind::growing, "every tile raises the maximum");
  add(InputKind::spike_first, "the maximum comes first and stays");
  add(InputKind::spike_last, "the last key, in the ragged tile, has nearly all the weight");
  add(InputKind::spike_tiles, "the maximum is at the edge of a tile");
  add(InputKind::large, "exp overflows without the maximum, in both directions");
  add(InputKind::loud, "few keys decide, and dP reaches hundreds");
  // A tile of 05/online has 1024 keys; few rows, to be quick.
  cases.push_back(make({1, 1, 1, 5, 1200, 64}, DType::fp16, Mask::none, InputKind::growing)
                      .for_("maxima that rise from one tile of 1024 keys to the next"));
  cases.push_back(make({1, 1, 1, 5, 1200, 64}, DType::bf16, Mask::causal, InputKind::spike_last)
                      .for_("the spike is in the second tile of 1024 keys"));
  // Every row sees keys of the second half.
  cases.push_back(make({1, 1, 1, 70, 300, 64}, DType::bf16, Mask::none, InputKind::overflow)
                      .for_("whole tiles of -inf before the first number"));
  cases.push_back(make({1, 2, 1, 70, 300, 128}, DType::bf16, Mask::causal, InputKind::overflow)
                      .for_("the same, with D = 128's tiles and the mask's own -inf"));
  return cases;
}

// Two of them over a batch, whose second part has heads that count on.
std::vector<Case> groups_of_heads() {
  return {make({2, 6, 6, 33, 70, 64}, DType::fp16, Mask::none).for_("multi-head: a kv head for each query head"),
          make({1, 6, 3, 33, 70, 128}, DType::bf16, Mask::causal).for_("groups of two"),
          make({2, 6, 2, 33, 70, 64}, DType::bf16, Mask::causal).for_("groups of three, which is no power of two"),
          make({1, 6, 1, 33, 70, 128}, DType::fp16, Mask::none).for_("multi-query: one kv head"),
          make({1, 20, 10, 130, 130, 64}, DType::fp16, Mask::causal)
              .for_("so many that a backward leaves two query heads of several tiles to a thread block")};
}

// Rows with few keys and so, when they are loud, with an LSE far below 0: exp(S - LSE) of a column past the last key,
// where S would be 0, is beyond any storage type, and must not be used although K is 0 there.
std::vector<Case> few_loud_keys() {
  std::vector<Case> cases;
  const auto add = [&](int seq_k, const char* because) {
    for (const int head_dim : head_dims) {
      const size_t turn = cases.size() / 2 + (head_dim == 128);
      cases.push_back(make({1, 2, 1, 70, seq_k, head_dim}, dtypes[turn % 2], masks[cases.size() / 4], InputKind::loud)
                          .for_(because));
    }
  };
  add(1, "one key: every other column of the only tile is past it");
  add(70, "a second tile of 64 keys with a few in it");
  add(3, "with the mask: rows that see no key, one, two and three");
  add(33, "with the mask: one key after 32");
  Case low =
      make({1, 2, 1, 70, 1, 64}, DType::fp16, Mask::none, InputKind::loud)
          .for_("one key, and scores down to several hundreds below 0: a maximum cannot begin at some low number");
  low.problem.scale = 2.5f;
  cases.push_back(low);
  return cases;
}

// What is special about a case with extras.
struct Extra {
  int left = -1, right = -1;
  float softcap = 0;
  bool alibi = false, sink = false, views = false;
  int head_dim_v = 0;
  bool unaligned = false;
};
Case with(const Extra& extra, Case c) {
  Problem& p = c.problem;
  p.window_left = extra.left, p.window_right = extra.right, p.softcap = extra.softcap;
  p.alibi = extra.alibi, p.sink = extra.sink, p.views = extra.views || extra.unaligned;
  p.unaligned = extra.unaligned;
  p.head_dim_v = extra.head_dim_v;
  return c;
}

// Sequences of a case's lengths at most. The second of them has one query, the fourth none, the sixth no key.
Case packed(Case c) {
  c.problem = harness::packed(c.problem);
  return c;
}

// The usual inputs, and 2^16 scores: see norms_count(). Where one weight decides alone, or where dP and its mean nearly
// cancel, norms are those of other errors than roundings, and differ from kernel to kernel.
std::vector<Case> enough_for_norms() {
  return {make({1, 1, 1, 128, 512, 64}, DType::fp16, Mask::causal).for_("roundings to fp16, in D = 64's tiles"),
          make({1, 1, 1, 128, 512, 128}, DType::bf16, Mask::none).for_("roundings to bf16, in D = 128's tiles"),
          with({.head_dim_v = 128}, make({1, 1, 1, 128, 512, 192}, DType::fp16, Mask::causal))
              .for_("roundings where V has its own head dim")};
}

// A weight that is too small for fp16 one by one, and not together: thousands of keys, 2^18 times lighter than key 0.
std::vector<Case> many_small_weights() {
  return {make({1, 1, 1, 1, 4096, 64}, DType::fp16, Mask::none, InputKind::sink).for_("whole tiles, D = 64"),
          make({1, 1, 1, 3, 2060, 128}, DType::fp16, Mask::causal, InputKind::sink).for_("a ragged tail, D = 128")};
}

// More than any backward has go round at once (64), and not a multiple: the last round is a smaller one. A forward has
// one round for so many short heads: tests/device tries the order of its lists.
std::vector<Case> more_heads_than_a_round() {
  return {
      make({1, 66, 66, 3, 130, 64}, DType::fp16, Mask::none)
          .for_("a second block of 128 keys for each head, in the order of the list"),
      make({2, 33, 33, 3, 40, 128}, DType::bf16, Mask::causal).for_("heads that are counted over a batch, D = 128")};
}

// So many keys that 13 bits behind the first one of a sum are too few for V: what is lost then is a ninth of O, more
// than the rounding of P may cost. And for scales of tiles a V whose scales are 2^200 apart, a factor that fp32 has
// not.
std::vector<Case> for_eight_bits() {
  const auto of_head_dim = [](int head_dim) {
    Case c = make({1, 1, 1, 2, 8000, head_dim}, DType::fp16, Mask::none, InputKind::long_sum);
    c.problem.eight_bits = attention::scale_of_tensor;
    return c;
  };
  const auto apart = [](int seq_q, int head_dim, Mask mask) {
    Case c = make({1, 2, 1, seq_q, 300, head_dim}, DType::bf16, mask, InputKind::apart);
    c.problem.eight_bits = attention::scale_of_tile;
    return c;
  };
  return {of_head_dim(64).for_("values of one sign"), of_head_dim(256).for_("the same, where a chapter adds them up"),
          apart(70, 64, Mask::none).for_("rows that see a tiny, a huge and an empty tile of V"),
          apart(300, 128, Mask::causal).for_("the same, and rows that see the tiny one alone"),
          apart(70, 256, Mask::none).for_("the same at D = 256")};
}

std::vector<Case> other_head_dims() {
  const auto padded = [](int head_dim, DType dtype, Mask mask) {
    return make({1, 2, 1, 65, 97, head_dim}, dtype, mask);
  };
  return {
      padded(8, DType::fp16, Mask::none).for_("the smallest: halves of rows are 8 bytes"),
      padded(40, DType::bf16, Mask::causal).for_("padded to 64"),
      with({.head_dim_v = 24}, padded(24, DType::fp16, Mask::causal)).for_("the same, and V is said to be as wide"),
      padded(72, DType::bf16, Mask::none).for_("padded to 128; a tensor map has pages of 36 columns"),
      padded(96, DType::fp16, Mask::causal).for_("padded to 128 by whole pages"),
      padded(200, DType::bf16, Mask::none).for_("padded to 256, where a chapter takes it"),
      padded(256, DType::fp16, Mask::none).for_("kernels of their own beyond 128"),
      make({1, 2, 2, 150, 70, 256}, DType::bf16, Mask::causal).for_("the same, with queries that see no key"),
      make({2, 2, 1, 20, 420, 136}, DType::fp16, Mask::causal, InputKind::growing)
          .for_("the same, padded; the keys fill every buffer again, and each tile raises the maximum"),
      with({.head_dim_v = 128}, make({2, 4, 2, 70, 130, 192}, DType::fp16, Mask::causal))
          .for_("V has its own head dim: batches, groups, and tails"),
      with({.head_dim_v = 128}, make({1, 2, 1, 150, 70, 192}, DType::bf16, Mask::causal))
          .for_("rows that see no key, a whole tile among them"),
      with({.head_dim_v = 128}, make({1, 1, 1, 33, 257, 192}, DType::bf16, Mask::none))
          .for_("one query and one key after whole tiles"),
      with({.head_dim_v = 128}, make({1, 1, 1, 1, 400, 192}, DType::fp16, Mask::none, InputKind::growing))
          .for_("one query; each tile of keys raises the maximum"),
      with({.head_dim_v = 128}, make({1, 1, 1, 300, 20, 192}, DType::fp16, Mask::none, InputKind::large))
          .for_("few keys, and scores around 100"),
      with({.sink = true, .views = true, .head_dim_v = 128}, make({2, 2, 1, 65, 129, 192}, DType::bf16, Mask::causal))
          .for_("a sink, in tensors with gaps"),
      with({.head_dim_v = 128, .unaligned = true}, make({1, 2, 1, 70, 90, 192}, DType::bf16, Mask::causal))
          .for_("rows that begin anywhere"),
      with({.left = 70, .right = 3, .sink = true, .views = true, .head_dim_v = 128},
           make({1, 2, 1, 200, 200, 192}, DType::fp16, Mask::none))
          .for_("a window, a sink and strides"),
      with({.left = 10, .right = 10, .head_dim_v = 128}, make({1, 1, 1, 300, 70, 192}, DType::bf16, Mask::none))
          .for_("a window, with whole tiles of rows that see no key")};
}

// Where a window begins and ends in tiles of 32, 64 and 128 rows and keys, and where rows or keys see nothing.
std::vector<Case> windows() {
  struct Window {
    int seq_q, seq_k, left, right;
    Mask mask;
    const char* because;
  };
  constexpr Window all[] = {
      {130, 130, 0, 0, Mask::none, "each query sees its own key, and no other"},
      {129, 129, 31, 0, Mask::none, "32 keys: one tile, or parts of two"},
      {200, 200, 64, 63, Mask::none, "128 keys: whole tiles and both edges in most tiles"},
      {257, 257, 100, -1, Mask::causal, "a window under the causal mask: it ends at the diagonal"},
      {150, 170, -1, 20, Mask::none, "no beginning: only the end of the keys moves"},
      {150, 170, 20, -1, Mask::none, "no end: only the beginning moves"},
      {70, 300, 5, 3, Mask::none, "few queries, aligned with the last keys: most keys are seen by none"},
      {20, 400, 16, 0, Mask::none, "whole blocks of 128 keys that nobody sees have gradients of zero"},
      {300, 70, 10, 10, Mask::none, "more queries than keys: whole tiles of rows see no key"},
      {193, 64, 3, 130, Mask::none, "a right side that is longer than the keys"},
      {65, 65, 4096, 4096, Mask::none, "a window that hides nothing"},
      {257, 257, 65, 0, Mask::none, "a tile of 64 queries that sees one key of a block of 128, its last"},
      {257, 257, 1, 0, Mask::none, "the same with a tile of 128 queries"},
      {300, 300, 206, 14, Mask::none, "one row of a warp that does not see the first key of a tile, or the last"},
      {300, 300, 206, 14, Mask::none, "the same, for the other head dim"},
  };
  std::vector<Case> cases;
  for (const Window& w : all) {
    const size_t turn = cases.size();
    cases.push_back(
        with({w.left, w.right}, make({1, 2, 1, w.seq_q, w.seq_k, head_dims[turn % 2]}, dtypes[turn / 2 % 2], w.mask))
            .for_(w.because));
  }
  return cases;
}

std::vector<Case> scores() {
  const auto capped = [](float cap, Case c) { return with({.softcap = cap}, c); };
  const auto alibi = [](Case c) { return with({.alibi = true}, c); };
  return {
      capped(3, make({1, 2, 1, 70, 130, 64}, DType::fp16, Mask::causal)).for_("a cap that most scores feel"),
      capped(3, make({1, 2, 1, 130, 70, 128}, DType::bf16, Mask::causal)).for_("the same, with rows without a key"),
      capped(30, make({1, 1, 1, 64, 192, 64}, DType::bf16, Mask::none, InputKind::loud))
          .for_("scores far beyond the cap, whose derivative is 0"),
      capped(30, make({1, 1, 1, 65, 97, 128}, DType::fp16, Mask::none, InputKind::large)).for_("|score| around 100"),
      capped(20, make({1, 2, 1, 70, 130, 64}, DType::bf16, Mask::none))
          .for_("all scores within the cap, but not small"),
      capped(20, make({1, 1, 1, 65, 97, 128}, DType::fp16, Mask::causal)).for_("the same, D = 128"),
      alibi(make({2, 4, 2, 70, 130, 64}, DType::fp16, Mask::causal)).for_("slopes of heads and batches"),
      alibi(make({1, 4, 1, 129, 65, 128}, DType::bf16, Mask::none))
          .for_("keys on both sides of a query, and queries before the first key"),
      alibi(make({1, 1, 1, 3, 400, 128}, DType::fp16, Mask::none)).for_("distances of several tiles")};
}

std::vector<Case> sinks() {
  const auto sink = [](Case c) { return with({.sink = true}, c); };
  return {sink(make({2, 4, 2, 70, 130, 64}, DType::fp16, Mask::causal)).for_("a gradient that batches add to"),
          sink(make({1, 2, 1, 150, 70, 128}, DType::bf16, Mask::causal)).for_("rows without a key have the sink alone"),
          sink(make({1, 2, 1, 70, 1, 64}, DType::fp16, Mask::none, InputKind::loud))
              .for_("one key, and scores far above and below the sink"),
          sink(make({1, 2, 2, 64, 128, 128}, DType::fp16, Mask::none, InputKind::large))
              .for_("scores around 100: exp(sink) alone is nothing, and exp(100) overflows")};
}

std::vector<Case> tensors_with_strides() {
  const auto views = [](Case c) { return with({.views = true}, c); };
  return {
      views(make({2, 4, 2, 70, 130, 64}, DType::fp16, Mask::causal)).for_("batches, groups, and tails; D = 64"),
      views(make({2, 2, 2, 130, 70, 128}, DType::bf16, Mask::causal)).for_("rows without a key; D = 128"),
      views(make({2, 2, 1, 65, 97, 40}, DType::bf16, Mask::none)).for_("a head dim that is padded, by way of copies"),
      views(make({2, 2, 1, 70, 90, 256}, DType::fp16, Mask::causal)).for_("head dims above 128: D = 256"),
      views(make({1, 2, 2, 70, 40, 192}, DType::bf16, Mask::none)).for_("D = 192"),
      with({.unaligned = true}, make({2, 2, 1, 70, 90, 64}, DType::fp16, Mask::causal))
          .for_("rows that begin anywhere, by way of copies")};
}

std::vector<Case> extras_together() {
  const auto small = [](int turn) {
    return make({1, 2, 1, 70 + 31 * turn, 150, head_dims[turn % 2]}, dtypes[turn / 2 % 2], Mask::none);
  };
  return {with({.left = 40, .right = 3, .softcap = 3}, small(0)).for_("a window and a softcap"),
          with({.left = 33, .right = 0, .alibi = true}, small(1)).for_("a window and ALiBi"),
          with({.left = 20, .right = 20, .sink = true}, small(2)).for_("a window and a sink, with rows without a key"),
          with({.softcap = 5, .sink = true}, small(3)).for_("a softcap and a sink"),
          with({.alibi = true, .sink = true}, small(0)).for_("ALiBi and a sink"),
          with({.left = 64, .right = 0, .views = true}, small(1)).for_("a window, and strides"),
          with({.left = 50, .right = 9, .softcap = 4, .sink = true, .views = true}, small(2))
              .for_("all that can be had together"),
          with({.left = 50, .right = 0, .alibi = true, .sink = true, .views = true}, small(3))
              .for_("the same, with the other score function"),
          packed(with({.left = 33, .right = 0, .alibi = true, .sink = true},
                      make({5, 2, 1, 150, 90, 64}, DType::bf16, Mask::none)))
              .for_("packed sequences, a window, ALiBi and a sink")};
}

std::vector<Case> packed_sequences() {
  return {packed(make({7, 2, 1, 150, 150, 64}, DType::fp16, Mask::causal))
              .for_("documents as a model is trained on them, a group of heads; D = 64"),
          packed(make({5, 2, 2, 300, 200, 128}, DType::bf16, Mask::none)).for_("other lengths of keys; D = 128"),
          packed(make({6, 2, 1, 70, 330, 64}, DType::bf16, Mask::causal)).for_("few queries beside many keys"),
          packed(make({6, 1, 1, 260, 65, 128}, DType::fp16, Mask::causal)).for_("queries that see no key"),
          packed(make({1, 2, 1, 129, 65, 64}, DType::fp16, Mask::none)).for_("one sequence"),
          packed(make({260, 1, 1, 2, 5, 64}, DType::fp16, Mask::causal))
              .for_("more sequences than a thread block counts at a time, all shorter than a tile"),
          packed(make({2, 40, 40, 20, 130, 64}, DType::bf16, Mask::none)).for_("more heads than go round at once"),
          packed(make({4, 2, 1, 65, 97, 40}, DType::bf16, Mask::causal)).for_("a head dim that is padded"),
          packed(with({.sink = true}, make({7, 4, 2, 70, 130, 64}, DType::fp16, Mask::causal)))
              .for_("a sink, whose gradient sequences add to"),
          packed(with({.left = 40, .right = 3, .softcap = 3}, make({6, 2, 1, 150, 200, 128}, DType::fp16, Mask::none)))
              .for_("a window and a softcap"),
          packed(with({.alibi = true}, make({6, 4, 2, 100, 150, 64}, DType::bf16, Mask::causal)))
              .for_("slopes of heads and sequences"),
          packed(with({.views = true}, make({4, 4, 2, 150, 70, 128}, DType::fp16, Mask::causal)))
              .for_("positions and heads with gaps between them"),
          packed(with({.left = 50, .right = -1, .sink = true, .views = true},
                      make({6, 2, 1, 150, 150, 64}, DType::fp16, Mask::causal)))
              .for_("a window under the causal mask, and a sink, with strides"),
          packed(with({.views = true}, make({4, 2, 1, 65, 97, 72}, DType::bf16, Mask::causal)))
              .for_("a padded head dim, and strides")};
}

Case blocks(BlockPattern pattern, Case c) {
  c.problem = attention::with_blocks(c.problem, pattern);
  return c;
}

std::vector<Case> block_masks() {
  using enum BlockPattern;
  return {
      blocks(documents, make({2, 2, 1, 400, 400, 64}, DType::fp16, Mask::none))
          .for_("documents, of which each batch has others; a group of heads; D = 64"),
      blocks(documents, make({1, 1, 1, 300, 300, 128}, DType::bf16, Mask::none)).for_("the same, D = 128"),
      blocks(prefix, make({1, 2, 1, 257, 385, 128}, DType::fp16, Mask::none))
          .for_("a prefix, whole tiles among cut ones; one query and one key after whole tiles"),
      blocks(prefix, make({1, 1, 1, 129, 200, 64}, DType::bf16, Mask::causal))
          .for_("a causal mask that hides what is listed"),
      blocks(dilated, make({1, 4, 2, 200, 330, 64}, DType::bf16, Mask::none))
          .for_("windows with gaps, by the head, in groups of heads"),
      blocks(dilated, make({2, 3, 1, 40, 512, 128}, DType::fp16, Mask::none))
          .for_("few queries: most columns have none"),
      blocks(scattered, make({2, 2, 1, 520, 400, 64}, DType::fp16, Mask::none))
          .for_("tiles anywhere, rows and columns of tiles with none, and queries that see nothing"),
      blocks(scattered, make({1, 4, 2, 400, 520, 128}, DType::bf16, Mask::none)).for_("the same, D = 128"),
      blocks(documents, make({1, 2, 2, 300, 20, 64}, DType::bf16, Mask::none)).for_("rows of tiles that see nothing"),
      blocks(scattered, make({1, 2, 1, 130, 70, 40}, DType::fp16, Mask::none)).for_("a head dim that is padded"),
      blocks(documents, with({.sink = true}, make({2, 2, 1, 200, 200, 64}, DType::fp16, Mask::none)))
          .for_("a sink, also of rows that see nothing"),
      blocks(scattered, with({.views = true}, make({1, 2, 1, 260, 400, 128}, DType::fp16, Mask::none)))
          .for_("tensors with gaps"),
      blocks(scattered, with({.sink = true, .views = true}, make({2, 2, 1, 260, 130, 64}, DType::bf16, Mask::none)))
          .for_("a sink, and strides")};
}

// Runs the pass on these tensors: all results must be NaN, and nothing but results may be written to.
template <class Pass>
std::string not_all_nan(const Pass& pass, const Problem& p, harness::DeviceTensors& device) {
  constexpr bool backward = std::is_same_v<Pass, attention::Backward>;
  std::vector<harness::GuardedBuffer*> results = {&device.o, &device.lse};
  if (backward) results = {&device.dq, &device.dk, &device.dv, &device.d_sink};
  for (harness::GuardedBuffer* result : results) result->upload(std::vector<char>(result->bytes()).data());
  if constexpr (backward)
    pass.run(p, device.backward_args(), nullptr);
  else
    pass.run(p, device.forward_args(), nullptr);
  check(cudaDeviceSynchronize());
  // Kernels fill them with ones, of which every 16 and every 32 are a NaN. A sum of NaNs has other bits.
  for (const harness::GuardedBuffer* result : results) {
    std::vector<uint16_t> halves(result->bytes() / sizeof(uint16_t));
    result->download(halves.data());
    const bool fp32 = result == &device.lse || result == &device.d_sink;
    for (size_t i = 0; i < halves.size(); i++)
      if (fp32 ? i % 2 && (halves[i] & 0x7fff) <= 0x7f80 : halves[i] != 0xffff) return "a result is not NaN";
  }
  return device.broken_guard();
}

// What the lists of a block mask may be that are none, in the place of those that the case has. All results must then
// be NaN, and nothing but results may be written to.
template <class Pass>
std::string not_nan_of_wrong_lists(const Pass& pass, const Case& c) {
  constexpr bool backward = std::is_same_v<Pass, attention::Backward>;
  const Problem& p = c.problem;
  if (!attention::unsupported(pass, p).empty()) return "";
  struct Mistake {
    const char* name;
    bool of_columns;
    std::function<void(attention::BlockLists&)> make;
  };
  const int rows = (p.seq_q + 127) / 128, columns = (p.seq_k + 127) / 128;
  const Mistake mistakes[] = {
      {"a tile that stands twice in its row", false, [](auto& x) { x.tiles[2] = x.tiles[0]; }},
      {"tiles that fall", false, [](auto& x) { std::swap(x.tiles[0], x.tiles[2]); }},
      {"a tile behind the last", false, [=](auto& x) { x.tiles[2 * (x.begin[1] - 1)] = columns; }},
      {"a tile below 0", false, [](auto& x) { x.tiles[0] = -1; }},
      {"bits that there are not", false, [](auto& x) { x.tiles[1] = x.cuts(); }},
      {"bits below none", false, [](auto& x) { x.tiles[1] = -2; }},
      {"a first row that does not begin with 0", false, [](auto& x) { x.begin[0] = 1; }},
      {"rows that fall", false, [](auto& x) { x.begin[1] = INT_MAX; }},
      {"rows that end early", false, [=](auto& x) { x.begin[size_t(rows)]--; }},
      {"a column that has a tile more", true, [=](auto& x) { x.begin[size_t(rows) + 2]++; }},
      {"a tile that its row does not have", true,
       [=](auto& x) {
         int* tile = &x.tiles[size_t(x.listed()) * 2];
         *tile = *tile == 0 ? 3 : 0;  // 3 is a row without tiles
       }},
      {"other bits in the column", true, [](auto& x) { x.tiles[size_t(x.listed()) * 2 + 1] ^= 1; }},
      {"a bit of a key that no query has", true, [](auto& x) { x.bits[x.bits.size() - 200] ^= 64; }}};
  for (const Mistake& mistake : mistakes) {
    if (mistake.of_columns && !backward) continue;
    harness::DeviceTensors device(p, solved(c, false).inputs, pass.workspace_bytes(p), backward);
    attention::BlockLists lists = device.blocks;
    mistake.make(lists);
    device.block_begin.upload(lists.begin.data());
    device.block_tiles.upload(lists.tiles.data());
    device.block_bits.upload(lists.bits.data());
    if (const std::string wrong = not_all_nan(pass, p, device); !wrong.empty())
      return std::string("of lists with ") + mistake.name + ", " + wrong;
  }
  return "";
}

// What cu_seqlens may be that are none, in the place of those that the case has. All results must then be NaN, and
// nothing but results may be written to.
template <class Pass>
std::string not_nan_of_wrong_lengths(const Pass& pass, const Case& c) {
  constexpr bool backward = std::is_same_v<Pass, attention::Backward>;
  const Problem& p = c.problem;
  if (!attention::unsupported(pass, p).empty()) return "";
  const struct {
    const char* name;
    int entry, value;  // of the queries' or, below 0, counted from the end
  } mistakes[] = {{"fall", 1, p.total_q},
                  {"do not begin with 0", 0, 1},
                  {"begin below 0", 0, -64},
                  {"end behind the tensor", -1, p.total_q + 1},
                  {"end far behind it", -1, INT_MAX},
                  {"end below 0", -1, INT_MIN}};
  for (const bool of_keys : {false, true})
    for (const auto& mistake : mistakes) {
      harness::DeviceTensors device(p, solved(c, false).inputs, pass.workspace_bytes(p), backward);
      harness::GuardedBuffer& lengths = of_keys ? device.cu_seqlens_k : device.cu_seqlens_q;
      std::vector<int> wrong(lengths.bytes() / sizeof(int));
      lengths.download(wrong.data());
      const int beyond = of_keys ? p.total_k - p.total_q : 0;
      wrong[mistake.entry < 0 ? wrong.size() - 1 : size_t(mistake.entry)] =
          mistake.value >= p.total_q && mistake.value < INT_MAX ? mistake.value + beyond : mistake.value;
      lengths.upload(wrong.data());
      if (const std::string not_nan = not_all_nan(pass, p, device); !not_nan.empty())
        return std::string("of cu_seqlens that ") + mistake.name + ", " + not_nan;
    }
  return "";
}

std::vector<Case> other_scales() {
  Case c = make({1, 1, 1, 64, 96, 64}, DType::fp16, Mask::causal).for_("a scale as no default has it");
  Case tiny = make({1, 1, 1, 33, 70, 64}, DType::bf16, Mask::none)
                  .for_("LSE / scale is larger than a kernel may expect that holds it in 16 bits");
  c.problem.scale = 0.3f;
  tiny.problem.scale = 1e-10f;
  return {c, tiny};
}

std::vector<Case> both_ragged() {
  return {ragged(64).for_("three tiles both ways, D = 64"), ragged(128).for_("three tiles both ways, D = 128"),
          with({.head_dim_v = 128}, make({1, 2, 1, 150, 170, 192}, DType::fp16, Mask::causal))
              .for_("the same, and V has its own head dim"),
          packed(make({6, 2, 1, 150, 170, 64}, DType::fp16, Mask::causal)).for_("packed sequences"),
          blocks(BlockPattern::documents, ragged(64)).for_("a block mask")};
}

std::vector<Case> with_many_tiles() {
  return {many_tiles(64).for_("four blocks of keys add to a row, D = 64"),
          many_tiles(128).for_("four blocks of keys add to a row, D = 128"),
          with({.head_dim_v = 128}, many_tiles(192)).for_("the same, and V has its own head dim"),
          packed(many_tiles(64)).for_("a packed sequence of four blocks of keys"),
          blocks(BlockPattern::prefix, many_tiles(64)).for_("a block mask of four blocks of keys")};
}

// Cases whose number of tiles does not grow with a block's memory.
std::vector<Case> for_small_tiles() {
  return {ragged(64).for_("three tiles both ways, D = 64"),
          make({1, 2, 1, 70, 330, 128}, DType::fp16, Mask::causal)
              .for_("many ragged tiles: a row's parts can be added in any order, D = 128")};
}

std::vector<Case> unsupported_head_dims() {
  return {ragged(60).for_("no multiple of 8"), ragged(12).for_("small, and no multiple of 8"),
          ragged(264).for_("beyond 256"), ragged(1024).for_("far beyond, and a power of two")};
}

std::vector<Case> many_tiles_and_more_than_a_cache() {
  std::vector<Case> cases = {
      make({1, 36, 36, 130, 4000, 64}, DType::fp16, Mask::causal).for_("more K and V than an L2 cache holds at once")};
  const auto add = [&](const Sizes& sizes, Mask mask, InputKind inputs, const char* because) {
    cases.push_back(make(sizes, dtypes[cases.size() % 2], mask, inputs).for_(because));
  };
  for (const Mask mask : masks)
    for (const int D : head_dims) {
      add({2, 4, 2, 1023, 1025, D}, mask, InputKind::spread,
          "one row short of whole tiles, one key after them; row 1024");
      add({1, 2, 2, 2049, 2049, D}, mask, InputKind::growing, "many tiles, each of which raises the maximum");
      add({1, 4, 1, 3000, 517, D}, mask, InputKind::spread, "many rows; with the mask most see no key");
    }
  return cases;
}

// Some of the orders of the table in in_orders(): the usual one is the first.
struct Orders {
  int begin, end;
};
constexpr Orders usual_order = {0, 1}, other_orders = {1, 3}, some_orders = {0, 3}, all_orders = {0, 5};

// The first thing that test() says in any of these orders of the engine's.
template <class Test>
std::string in_orders([[maybe_unused]] Orders orders, Test&& test) {
#ifdef WORKBOOK_SIMT
  using simt::Order;
  constexpr struct {
    const char* name;
    Order order;
    unsigned seed;
  } known[] = {{"forward", Order::forward, 0},
               {"reverse", Order::reverse, 0},
               {"shuffled:1", Order::shuffled, 1},
               {"shuffled:2", Order::shuffled, 2},
               {"last_first", Order::last_first, 0}};
  const simt::Schedule before = simt::schedule();
  std::string wrong;
  for (int i = orders.begin; i < orders.end && wrong.empty(); i++) {
    simt::Schedule schedule = before;
    schedule.order = known[i].order;
    schedule.seed = known[i].seed;
    simt::set_schedule(schedule);
    if (wrong = test(); !wrong.empty()) wrong = std::string("in order ") + known[i].name + ", " + wrong;
  }
  simt::set_schedule(before);
  return wrong;
#else
  return test();
#endif
}

// Pass holds plain functions, which cannot carry another pass along: the one that is wrapped stands here.
template <class Args>
const Pass<Args>*& wrapped() {
  static const Pass<Args>* pass;
  return pass;
}

// The same pass, launched twice in the same workspace.
template <class Args>
Pass<Args> twice(const Pass<Args>& pass) {
  wrapped<Args>() = &pass;
  Pass<Args> repeated = pass;
  repeated.run = [](const Problem& p, const Args& args, cudaStream_t stream) {
    for (int i = 0; i < 2; i++) wrapped<Args>()->run(p, args, stream);
  };
  return repeated;
}

#ifndef WORKBOOK_SIMT
// NaN everywhere that the pass writes to.
void poison(const Problem& p, const attention::ForwardArgs& args) {
  check(cudaMemset(args.o, 0xff, p.o_size() * sizeof(uint16_t)));
  check(cudaMemset(args.lse, 0xff, p.lse_size() * sizeof(float)));
}
void poison(const Problem& p, const attention::BackwardArgs& args) {
  check(cudaMemset(args.dq, 0xff, p.q_size() * sizeof(uint16_t)));
  check(cudaMemset(args.dk, 0xff, p.kv_size() * sizeof(uint16_t)));
  check(cudaMemset(args.dv, 0xff, p.v_size() * sizeof(uint16_t)));
}

// The same pass, with its launches captured in a CUDA graph that is then replayed twice, in the same workspace.
template <class Args>
Pass<Args> in_a_graph(const Pass<Args>& pass) {
  wrapped<Args>() = &pass;
  Pass<Args> replayed = pass;
  replayed.run = [](const Problem& p, const Args& args, cudaStream_t) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    wrapped<Args>()->run(p, args, stream);
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    poison(p, args);                 // what did not get into the graph was for nothing
    check(cudaDeviceSynchronize());  // the inputs are there: this stream does not wait for the one that brought them
    for (int i = 0; i < 2; i++) check(cudaGraphLaunch(executable, stream));  // the second one after the first
    check(cudaStreamSynchronize(stream));
    check(cudaGraphExecDestroy(executable));
    check(cudaGraphDestroy(graph));
    check(cudaStreamDestroy(stream));
  };
  return replayed;
}
#endif

// Launches in these orders, so many in each, that do not give the same bits as the first one.
template <class Args>
std::string first_difference(const Pass<Args>& pass, const Case& c, Orders orders, int launches) {
  std::vector<uint16_t> first;
  return in_orders(orders, [&]() -> std::string {
    const auto runs = outputs(pass, c, launches);
    if (first.empty()) first = runs[0];
    for (int i = 0; i < launches; i++)
      if (runs[i] != first) return "launch " + std::to_string(i) + " differs from the first";
    return "";
  });
}

// A pass gives the same bits in every launch if it says so. If it says not, the engine, which has orders enough, must
// see a difference; what its threads add at the same time is a matter of luck, so it has a second launch to look at.
template <class Args>
std::string not_as_deterministic_as_it_says(const Pass<Args>& pass, const Case& c) {
  if (!attention::unsupported(pass, c.problem).empty()) return "";
  const int launches = on_gpu ? 50 : pass.deterministic ? 1 : 2;
  const std::string difference = first_difference(pass, c, all_orders, launches);
  if (pass.deterministic) return difference;
  return difference.empty() && !on_gpu ? "is the same in every order, although it says that it is not" : "";
}

template <class Args>
std::string with_little_shared_memory(const Pass<Args>& pass, const Case& c) {
  const LittleSharedMemory little;
  if (const std::string why = attention::unsupported(pass, c.problem); !why.empty())  // made for GPUs that have more
    return why.find("bytes of shared memory") != std::string::npos ? "" : "refuses for another reason: " + why;
  if (pass.deterministic)
    if (const std::string difference = first_difference(pass, c, some_orders, on_gpu ? 2 : 1); !difference.empty())
      return difference;
  return in_orders(pass.deterministic ? usual_order : some_orders, [&] { return solve(pass, c); });
}

// RoPE sees distances alone: if every query and every key stands 1000 positions further on, O is the same.
std::string with_all_positions_moved(const Forward& pass, const Case& c) {
  if (!c.problem.rope) return "";  // there are no positions
  const Solved& question = solved(c, false);
  harness::DeviceTensors device(c.problem, question.inputs, pass.workspace_bytes(c.problem), false);
  device.upload_rope(c.problem, 1000);
  pass.run(c.problem, device.forward_args(), nullptr);
  check(cudaDeviceSynchronize());
  std::vector<uint16_t> o(c.problem.q_size());
  device.o.download(o.data());
  return question.reference.check_forward(harness::from_storage(o, c.problem.dtype), {}).first_wrong();
}

// A head dim that nobody supports has to be refused, in a line that names it.
template <class Args>
std::string refusal_missing(const Pass<Args>& pass, const Case& c) {
  const std::string why = attention::unsupported(pass, c.problem);
  const bool named = why.find(std::to_string(c.problem.head_dim)) != std::string::npos;
  return named && why.find('\n') == std::string::npos ? "" : "of this head dim it says: " + why;
}

// The small cases that are looked at access by access, and for passes that take them two with extras.
std::vector<Case> checked() {
  std::vector<Case> cases = cases_for_checks();
  cases.push_back(
      with({.left = 33, .right = 5, .sink = true, .views = true}, make({1, 2, 1, 70, 200, 64}, DType::fp16, Mask::none))
          .for_("a window that begins and ends inside of tiles, in tensors with gaps, D = 64"));
  cases.push_back(with({.left = 20, .right = 0, .softcap = 3}, make({1, 1, 1, 130, 67, 128}, DType::bf16, Mask::none))
                      .for_("rows and keys that see nothing, and a score function, D = 128"));
  cases.push_back(with({.head_dim_v = 128}, make({1, 2, 1, 65, 129, 192}, DType::fp16, Mask::causal))
                      .for_("a V with its own head dim"));
  cases.push_back(packed(make({5, 2, 1, 70, 140, 64}, DType::fp16, Mask::causal))
                      .for_("packed sequences, of which some are empty, D = 64"));
  cases.push_back(packed(with({.left = 33, .right = 5, .softcap = 3, .sink = true, .views = true},
                              make({5, 1, 1, 40, 90, 128}, DType::bf16, Mask::none)))
                      .for_("the same with all extras, D = 128"));
  cases.push_back(blocks(BlockPattern::documents, make({1, 2, 1, 150, 150, 64}, DType::fp16, Mask::none))
                      .for_("a block mask, of whose rows some see nothing, D = 64"));
  cases.push_back(blocks(BlockPattern::prefix, make({1, 1, 1, 40, 300, 128}, DType::bf16, Mask::none))
                      .for_("a block mask with whole tiles, D = 128"));
  return cases;
}

std::vector<Kind> make_kinds() {
  if (can_trace())
    return {kind("trace",
                 "races on shared memory, reads of what is not there yet, waits that are missing: whatever is computed",
                 checked(), [](const auto& pass, const Case& c) {
                   if (!attention::unsupported(pass, c.problem).empty()) return std::string();
                   // Kernels that nobody has read may do something else, or nothing, where they are traced.
                   if (harness::kernels_are_apart()) return solve(pass, c);
                   outputs(pass, c, 1);  // fails if the engine objects
                   return std::string();
                 })};
  std::vector<Kind> all = {
      solving("lengths",
              "lengths just below, at and above a multiple of a tile, Nq and Nk equal or not; and rows that see no key",
              around_the_edges_of_tiles()),
      solving(
          "inputs",
          "maxima that rise, lie in one key, reach +100 and -100, or are -inf at first; scores that few keys decide",
          unusual_inputs()),
      solving("norms",
              "numbers that are wrong, and roundings too many: each result may pass alone, all together do not",
              enough_for_norms(), usual_guard, Judged::elements_and_norms),
      solving("weights", "thousands of weights that are too small for fp16 one by one", many_small_weights()),
      solving("heads", "batches, and query heads that share a kv head", groups_of_heads()),
      solving("rounds", "more heads than go round at once", more_heads_than_a_round()),
      solving("few_keys", "few keys, and LSEs far below 0", few_loud_keys()),
      solving(
          "head_dims",
          "other head dims than 64 and 128: rows that are padded, numbers of the padding that count, a V with its own",
          other_head_dims()),
      solving("scale", "a scale that is not 1/sqrt(D)", other_scales()),
      kind("non_finite", "NaN and infinities that get lost, or reach what does not depend on them",
           cases_for_non_finite(), [](const auto& pass, const Case& c) { return wrong_non_finite(pass, c); }),
      kind("repeat", "bits that differ from launch to launch", with_many_tiles(),
           [](const auto& pass, const Case& c) { return not_as_deterministic_as_it_says(pass, c); }),
      kind("little_memory", "the tiles of a GPU whose blocks have little shared memory", for_small_tiles(),
           [](const auto& pass, const Case& c) { return with_little_shared_memory(pass, c); }),
      {"moved",
       "positions that count, and not their distances",
       {ragged().for_("ragged tiles, at positions from 1000 on")},
       with_all_positions_moved,
       [](const attention::Backward&, const Case&) { return std::string(); }},
      {"eight_bits",
       "in eight bits, sums that tensor cores cut off, of passes that do not say so; scales of tiles that lie far "
       "apart",
       for_eight_bits(),
       [](const Forward& pass, const Case& c) {
         const bool long_sum = c.inputs == InputKind::long_sum;
         const bool asked = long_sum ? pass.eight_bits && !pass.cuts_sums : pass.eight_bits >= attention::scale_of_tile;
         return asked ? solve(pass, c) : std::string();
       },
       [](const attention::Backward&, const Case&) { return std::string(); }},
      solving_with_extras(
          "windows", "edges of a window that are one off, in the mask, in a tile or in what is left out", windows()),
      solving_with_extras("scores", "scores or gradients without their function, or without its derivative", scores()),
      solving_with_extras("sinks", "sinks that are missing in a sum, in LSE or in a gradient", sinks()),
      solving_with_extras("views", "strides that are forgotten, and numbers between rows", tensors_with_strides()),
      solving_with_extras("packed", "sequences that see one another, begin elsewhere, or are left out",
                          packed_sequences()),
      kind("blocks", "tiles that are left out, taken for whole, or read as others, on each loop that a chapter has",
           block_masks(),
           [](const auto& pass, const Case& c) {
             if (!(pass.takes & attention::blocks)) return std::string();
             const std::string wrong = solve(pass, c);
             const LittleSharedMemory little;
             return wrong.empty() ? solve(pass, c) : wrong;
           }),
      kind(
          "wrong_lists", "numbers, or writes elsewhere, where the lists of a block mask are none",
          {blocks(BlockPattern::scattered, with({.sink = true}, make({1, 2, 1, 600, 600, 64}, DType::fp16, Mask::none)))
               .for_("rows and columns with several tiles, and sinks' gradients")},
          [](const auto& pass, const Case& c) {
            const std::string wrong = not_nan_of_wrong_lists(pass, c);
            const LittleSharedMemory little;
            return wrong.empty() ? not_nan_of_wrong_lists(pass, c) : wrong;
          }),
      kind("wrong_lengths", "numbers, or writes elsewhere, where packed sequences begin or end nowhere",
           {packed(with({.sink = true}, make({7, 2, 1, 70, 130, 64}, DType::fp16, Mask::causal)))
                .for_("sequences of all lengths, and sinks' gradients")},
           [](const auto& pass, const Case& c) {
             const std::string wrong = not_nan_of_wrong_lengths(pass, c);
             const LittleSharedMemory little;  // where a chapter may have another loop
             return wrong.empty() ? not_nan_of_wrong_lengths(pass, c) : wrong;
           }),
      solving_with_extras("extras", "extras that are right alone and not together", extras_together()),
      kind("refusals", "what nobody supports, and is not refused", unsupported_head_dims(),
           [](const auto& pass, const Case& c) { return refusal_missing(pass, c); }),
  };
  if (on_gpu) {
    all.push_back(
        solving("long", "many tiles, and more K and V than an L2 cache likes", many_tiles_and_more_than_a_cache()));
#ifndef WORKBOOK_SIMT
    all.push_back(kind("graph",
                       "launches that are outside of the stream, or take what the launch before has left for theirs",
                       both_ragged(), [](const auto& pass, const Case& c) { return solve(in_a_graph(pass), c); }));
#endif
  } else {
    // What a launch leaves in the workspace, sums and counters of thread blocks among it, is nothing to the next one.
    all.push_back(kind("again", "what the launch before has left in the workspace", both_ragged(),
                       [](const auto& pass, const Case& c) { return solve(twice(pass), c); }));
    // Blocks, warps and threads in other orders: a kernel that needs luck, or a barrier that is not there, fails.
    all.push_back(
        kind("orders", "results that depend on the order of threads, warps and blocks", both_ragged(),
             [](const auto& pass, const Case& c) { return in_orders(other_orders, [&] { return solve(pass, c); }); }));
  }
  return all;
}

}  // namespace

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = make_kinds();
  return all;
}

namespace {

// A launch may fail outside of solve(), which says what has failed.
template <class WrongWith, class Pass>
std::string wrong_in(const WrongWith& wrong_with, const Pass& pass, Case c, bool rope) {
  c.problem.rope = rope;
  c.problem.eight_bits = pass.eight_bits;
  try {
    return wrong_with(pass, c);
  } catch (const CudaError& error) {
    return error.what();
  }
}

template <class Pass>
std::string first_of_all(const Kind& kind, const Pass& pass, bool rope) {
  for (const Case& c : kind.cases)
    if (const std::string wrong = kind.against(pass, rope, c); !wrong.empty()) return name(c) + ": " + wrong;
  return "";
}

}  // namespace

std::string Kind::against(const attention::Forward& pass, bool rope, const Case& c) const {
  return wrong_in(wrong_with_forward, pass, c, rope);
}
std::string Kind::against(const attention::Backward& pass, bool rope, const Case& c) const {
  return wrong_in(wrong_with_backward, pass, c, rope);
}
std::string Kind::against(const attention::Forward& pass, bool rope) const { return first_of_all(*this, pass, rope); }
std::string Kind::against(const attention::Backward& pass, bool rope) const { return first_of_all(*this, pass, rope); }

}  // namespace chapter_suite
