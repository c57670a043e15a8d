#include "tests/chapter/kinds.h"

#include <algorithm>
#include <iterator>

#include "device/cuda_error.h"
#include "device/trace.h"
#include "harness/verdict.h"
#include "tests/chapter/little_shared_memory.h"
#include "tests/chapter/not_numbers.h"
#include "tests/chapter/references.h"

namespace chapter_suite {
namespace {

using attention::DType;
using attention::Forward;
using attention::Mask;
using attention::Pass;
using attention::Problem;
using harness::InputKind;

constexpr Mask masks[] = {Mask::none, Mask::causal};
constexpr DType dtypes[] = {DType::fp16, DType::bf16};
constexpr int head_dims[] = {64, 128};

// A kind from a function of a forward or a backward.
template <class Test>
Kind kind(const char* name, const char* looks_for, Test against) {
  return {name, looks_for, against, against};
}

// A kind that solves some cases, and says which of them is wrong.
Kind kind_of_cases(const char* name, const char* looks_for, const std::vector<Case>& cases, size_t guard = usual_guard,
                   Judged judged = Judged::elements) {
  return kind(name, looks_for, [=](const auto& pass, bool rope) {
    for (Case c : cases) {
      c.problem.rope = rope;
      if (const std::string wrong = solve(pass, c, guard, judged); !wrong.empty())
        return chapter_suite::name(c) + ": " + wrong;
    }
    return std::string();
  });
}

// Every length around the edges of tiles, with both masks and both head dims; equal and unequal both ways. The dtype
// alternates, so that each length and head dim gets both.
std::vector<Case> around_the_edges_of_tiles() {
  std::vector<Case> cases;
  const int lengths[] = {1, 2, 7, 31, 63, 64, 65, 127, 129, 257};
  for (const Mask mask : masks) {
    for (size_t i = 0; i < std::size(lengths); i++) {
      const int n = lengths[i], other = lengths[(i * 3 + 4) % std::size(lengths)];
      const size_t turn = i / 2 + (mask == Mask::causal);
      const DType one = dtypes[turn % 2], another = dtypes[(turn + 1) % 2];
      cases.push_back(make({1, 1, 1, n, n, 64}, one, mask));
      cases.push_back(make({1, 1, 1, n, n, 128}, another, mask));
      cases.push_back(make({1, 2, 1, n, other, i % 2 ? 64 : 128}, one, mask));
      cases.push_back(make({1, 1, 1, other, n, i % 2 ? 128 : 64}, another, mask));
    }
  }
  return cases;
}

// Every kind of input that is not the usual one, where tiles are full and where they are ragged. From one to the next
// the dtypes change places, so that both shapes meet both masks and both dtypes.
std::vector<Case> unusual_inputs() {
  std::vector<Case> cases;
  int turn = 0;
  for (const InputKind inputs : {InputKind::growing, InputKind::spike_first, InputKind::spike_last,
                                 InputKind::spike_tiles, InputKind::large, InputKind::loud}) {
    cases.push_back(make({1, 1, 1, 128, 192, 64}, dtypes[turn], masks[0], inputs));
    cases.push_back(make({1, 1, 1, 128, 192, 64}, dtypes[1 - turn], masks[1], inputs));
    cases.push_back(make({1, 1, 1, 71, 201, 128}, dtypes[turn], masks[1], inputs));
    cases.push_back(make({1, 1, 1, 71, 201, 128}, dtypes[1 - turn], masks[0], inputs));
    // A tile of 05/online has 1024 keys: maxima that rise from one to the next, few rows to be quick.
    if (inputs == InputKind::growing || inputs == InputKind::spike_last)
      for (const int other : {0, 1}) cases.push_back(make({1, 1, 1, 5, 1200, 64}, dtypes[other], masks[other], inputs));
    turn = 1 - turn;
  }
  // Every row sees keys of the second half.
  cases.push_back(make({1, 1, 1, 70, 300, 64}, DType::bf16, Mask::none, InputKind::overflow));
  cases.push_back(make({1, 2, 1, 70, 300, 128}, DType::bf16, Mask::causal, InputKind::overflow));
  return cases;
}

// Multi-head, grouped, multi-query, over a batch.
std::vector<Case> groups_of_heads() {
  std::vector<Case> cases;
  for (const int kv_heads : {6, 3, 2, 1})
    for (const int turn : {0, 1})
      cases.push_back(make({2, 6, kv_heads, 33, 70, 64}, dtypes[turn], masks[(turn + kv_heads) % 2]));
  return cases;
}

// Rows with few keys and so, when they are loud, with an LSE far below 0: exp(S - LSE) of a column past the last key,
// where S would be 0, is beyond any storage type, and must not be used although K is 0 there.
std::vector<Case> few_loud_keys() {
  std::vector<Case> cases;
  for (const int seq_k : {1, 3, 33, 70})
    for (const Mask mask : masks)
      for (const int head_dim : head_dims)
        for (const DType dtype : dtypes)
          cases.push_back(make({1, 2, 1, 70, seq_k, head_dim}, dtype, mask, InputKind::loud));
  return cases;
}

// The usual inputs, and 2^16 scores: see norms_count(). Where one weight decides alone, or where dP and its mean nearly
// cancel, norms are those of other errors than roundings, and differ from kernel to kernel.
std::vector<Case> enough_for_norms() {
  std::vector<Case> cases;
  for (const int head_dim : head_dims)
    for (const DType dtype : dtypes)
      cases.push_back(make({1, 1, 1, 128, 512, head_dim}, dtype, masks[(cases.size() + 1) / 2 % 2]));
  return cases;
}

// Those that kernels pad: to 64, 128 and 256, in pieces of 8 bytes where halves of rows are padded, and of 16; those
// that a tensor map knows; and beyond 128 those that some chapters take, some with a kernel of their own: with queries
// that see no key, too, and keys that fill every buffer again.
std::vector<Case> other_head_dims() {
  std::vector<Case> cases;
  for (const int head_dim : {8, 40, 72, 96, 200, 256})
    for (const Mask mask : masks) cases.push_back(make({1, 2, 1, 65, 97, head_dim}, dtypes[cases.size() % 2], mask));
  cases.push_back(make({1, 2, 2, 150, 70, 256}, DType::bf16, Mask::causal));
  cases.push_back(make({2, 2, 1, 20, 420, 136}, DType::fp16, Mask::causal, InputKind::growing));
  return cases;
}

Case another_scale() {
  Case c = make({1, 1, 1, 64, 96, 64}, DType::fp16, Mask::causal);
  c.problem.scale = 0.3f;
  return c;
}

std::vector<Case> many_tiles_and_more_than_a_cache() {
  std::vector<Case> cases = {make({1, 36, 36, 130, 4000, 64}, DType::fp16, Mask::causal)};
  for (const Mask mask : masks)
    for (const int head_dim : head_dims) {
      cases.push_back(make({2, 4, 2, 1023, 1025, head_dim}, dtypes[cases.size() % 2], mask));
      cases.push_back(make({1, 2, 2, 2049, 2049, head_dim}, dtypes[cases.size() % 2], mask, InputKind::growing));
      cases.push_back(make({1, 4, 1, 3000, 517, head_dim}, dtypes[cases.size() % 2], mask));
    }
  return cases;
}

// Solves the ragged case for both head dims.
template <class Args>
std::string solve_ragged(const Pass<Args>& pass, bool rope) {
  for (const int head_dim : head_dims) {
    Case c = ragged(head_dim);
    c.problem.rope = rope;
    if (const std::string wrong = solve(pass, c); !wrong.empty()) return name(c) + ": " + wrong;
  }
  return "";
}

// The first thing that test() says in any order of the engine's.
template <class Test>
std::string in_every_order([[maybe_unused]] bool but_forward, Test&& test) {
#ifdef WORKBOOK_SIMT
  using simt::Order;
  const simt::Schedule before = simt::schedule();
  std::string wrong;
  for (const auto& [name, order, seed] : {std::tuple{"forward", Order::forward, 0u},
                                          {"reverse", Order::reverse, 0u},
                                          {"shuffled:1", Order::shuffled, 1u},
                                          {"shuffled:2", Order::shuffled, 2u}}) {
    if (!wrong.empty() || (but_forward && order == Order::forward)) continue;
    simt::Schedule schedule = before;
    schedule.order = order;
    schedule.seed = seed;
    simt::set_schedule(schedule);
    if (wrong = test(); !wrong.empty()) wrong = std::string("in order ") + name + ", " + wrong;
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
  check(cudaMemset(args.o, 0xff, p.q_size() * sizeof(uint16_t)));
  check(cudaMemset(args.lse, 0xff, p.lse_size() * sizeof(float)));
}
void poison(const Problem& p, const attention::BackwardArgs& args) {
  check(cudaMemset(args.dq, 0xff, p.q_size() * sizeof(uint16_t)));
  check(cudaMemset(args.dk, 0xff, p.kv_size() * sizeof(uint16_t)));
  check(cudaMemset(args.dv, 0xff, p.kv_size() * sizeof(uint16_t)));
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

template <class Args>
std::string first_difference(const Pass<Args>& pass, const Case& c, int times) {
  std::vector<uint16_t> first;
  return in_every_order(false, [&]() -> std::string {
    const auto runs = outputs(pass, c, times);
    if (first.empty()) first = runs[0];
    for (int i = 0; i < times; i++)
      if (runs[i] != first) return "run " + std::to_string(i) + " differs from the first";
    return "";
  });
}

// A pass is bitwise equal from run to run if it says so, and on the engine, whose orders leave nothing to luck, not if
// it says not.
template <class Args>
std::string not_as_deterministic_as_it_says(const Pass<Args>& pass, bool rope, std::initializer_list<int> head_dims,
                                            int times) {
  for (const int head_dim : head_dims) {
    Case c = many_tiles(head_dim);
    c.problem.rope = rope;
    const std::string difference = first_difference(pass, c, times);
    if (pass.deterministic && !difference.empty()) return name(c) + ": " + difference;
    if (!pass.deterministic && difference.empty() && !on_gpu)
      return name(c) + ": is the same in every order, although it says that it is not";
  }
  return "";
}

template <class Args>
std::string with_little_shared_memory(const Pass<Args>& pass, bool rope) {
  const LittleSharedMemory little;
  Case c = ragged();
  c.problem.rope = rope;
  if (const std::string why = pass.unsupported(c.problem); !why.empty())  // made for GPUs that have more
    return why.find("bytes of shared memory") != std::string::npos ? "" : "refuses for another reason: " + why;
  const std::string wrong = in_every_order(true, [&] { return solve_ragged(pass, rope); });
  if (!wrong.empty() || !pass.deterministic) return wrong;
  return not_as_deterministic_as_it_says(pass, rope, {128}, 2);
}

// RoPE sees distances alone: if every query and every key stands 1000 positions further on, O is the same.
std::string with_all_positions_moved(const Forward& pass, bool rope) {
  if (!rope) return "";  // there are no positions
  Case c = ragged();
  c.problem.rope = true;
  const Solved& question = solved(c, false);
  harness::DeviceTensors device(c.problem, question.inputs, pass.workspace_bytes(c.problem), false);
  device.upload_rope(c.problem, 1000);
  pass.run(c.problem, device.forward_args(), nullptr);
  check(cudaDeviceSynchronize());
  std::vector<uint16_t> o(c.problem.q_size());
  device.o.download(o.data());
  return question.reference.check_forward(harness::from_storage(o, c.problem.dtype), {}).first_wrong();
}

// What nobody supports has to be refused, in a line that names the value.
template <class Args>
std::string refusal_missing(const Pass<Args>& pass) {
  for (const int head_dim : {60, 12, 264, 1024}) {
    const std::string why = pass.unsupported(ragged(head_dim).problem);
    if (why.find(std::to_string(head_dim)) == std::string::npos || why.find('\n') != std::string::npos)
      return "of head dim " + std::to_string(head_dim) + " it says: " + why;
  }
  return "";
}

std::vector<Kind> make_kinds() {
  if (can_trace())
    return {kind("trace",
                 "races on shared memory, reads of what is not there yet, waits that are missing: whatever is computed",
                 [](const auto& pass, bool rope) {
                   for (const auto& cases : {small_cases(), cases_that_fill_again()})
                     for (Case c : cases) {
                       c.problem.rope = rope;
                       if (pass.unsupported(c.problem).empty())
                         outputs(pass, c, 1);  // a launch fails if the engine objects
                     }
                   return std::string();
                 })};
  std::vector<Kind> all = {
      kind_of_cases("lengths",
                    "tails, and rows that see no key: every length around the edges of tiles, Nq and Nk equal and not",
                    around_the_edges_of_tiles()),
      kind_of_cases(
          "inputs",
          "maxima that rise, lie in one key, reach +100 and -100, or are -inf at first; scores that few keys decide",
          unusual_inputs()),
      kind_of_cases("norms", "bits that all results lose, and no single one visibly", enough_for_norms(), usual_guard,
                    Judged::elements_and_norms),
      // A weight that is too small for fp16 one by one, and not together: thousands of keys, 2^18 times lighter than
      // key 0.
      kind_of_cases("weights", "thousands of weights that are too small for fp16 one by one",
                    {make({1, 1, 1, 1, 4096, 64}, DType::fp16, Mask::none, InputKind::sink),
                     make({1, 1, 1, 3, 4100, 128}, DType::fp16, Mask::causal, InputKind::sink)}),
      kind_of_cases("heads", "batches, and query heads that share a kv head", groups_of_heads()),
      // More than any kernel has go round at once (64), and not a multiple, with a second block of keys for each: the
      // last round is a smaller one.
      kind_of_cases("rounds", "more heads than go round at once",
                    {make({1, 70, 70, 3, 130, 64}, DType::fp16, Mask::none),
                     make({2, 35, 35, 3, 130, 128}, DType::bf16, Mask::causal)}),
      kind_of_cases("few_keys", "a large negative LSE, where columns past the last key must not count",
                    few_loud_keys()),
      kind_of_cases("head_dims",
                    "other head dims than 64 and 128: rows that are padded, and numbers of the padding that count",
                    other_head_dims()),
      kind_of_cases("scale", "a scale that is not 1/sqrt(D)", {another_scale()}),
      kind("not_numbers", "NaN and infinities that get lost, or reach what does not depend on them",
           [](const auto& pass, bool rope) { return astray(pass, rope); }),
      kind("repeat", "bits that differ from run to run",
           [](const auto& pass, bool rope) {
             return not_as_deterministic_as_it_says(pass, rope, {64, 128}, on_gpu ? 50 : 2);
           }),
      kind("little_memory", "the tiles of a GPU whose blocks have little shared memory",
           [](const auto& pass, bool rope) { return with_little_shared_memory(pass, rope); }),
      {"moved", "positions that count, and not their distances", with_all_positions_moved,
       [](const attention::Backward&, bool) { return std::string(); }},
      kind("refusals", "what nobody supports, and is not refused",
           [](const auto& pass, bool) { return refusal_missing(pass); }),
  };
  if (on_gpu) {
    all.push_back(kind_of_cases("long", "many tiles, and more K and V than an L2 cache likes",
                                many_tiles_and_more_than_a_cache()));
#ifndef WORKBOOK_SIMT
    all.push_back(kind("graph",
                       "launches that are outside of the stream, or take what the launch before has left for theirs",
                       [](const auto& pass, bool rope) { return solve_ragged(in_a_graph(pass), rope); }));
#endif
  } else {
    // On a GPU every case has them.
    all.push_back(
        kind_of_cases("guards", "writing a little before a tensor, or using what is read there", small_cases(), 256));
    // What a launch leaves in the workspace, sums and counters of thread blocks among it, is nothing to the next one.
    all.push_back(kind("again", "what the launch before has left in the workspace",
                       [](const auto& pass, bool rope) { return solve_ragged(twice(pass), rope); }));
    // Blocks, warps and threads in other orders: a kernel that needs luck, or a barrier that is not there, fails.
    all.push_back(kind(
        "orders", "results that depend on the order of threads, warps and blocks",
        [](const auto& pass, bool rope) { return in_every_order(true, [&] { return solve_ragged(pass, rope); }); }));
  }
  return all;
}

}  // namespace

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = make_kinds();
  return all;
}

// A launch that fails outside of solve(), which says what has failed.
template <class Against, class Pass>
static std::string said(const Against& against, const Pass& pass, bool rope) {
  try {
    return against(pass, rope);
  } catch (const CudaError& error) {
    return error.what();
  }
}

std::string Kind::against(const attention::Forward& pass, bool rope) const { return said(against_forward, pass, rope); }
std::string Kind::against(const attention::Backward& pass, bool rope) const {
  return said(against_backward, pass, rope);
}

}  // namespace chapter_suite
