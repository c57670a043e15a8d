// Chapter 12, rung 7, all: every combination of the extras.
//
// What changed since 6_blocks: no line of the loops. This is the table of kernels. A problem without a window takes
// that of score or views; one with a window and no score function takes that of window; two more have both. Each of
// them takes a sink if there is one. Packed sequences take that of packed, or one kernel for every window and score
// function. A block mask takes that of blocks, and has none of the others beside it but a sink. Head dims above 128
// take those of views, and have nothing beside them but strides.
//
// Expected limit: an extra that a kernel has and a problem has not costs a comparison here and there.
#include "backward.h"
#include "forward.h"
#include "wide.h"

namespace variants {

extern const attention::Forward views_forward, window_forward, score_forward, packed_forward, blocks_forward;
extern const attention::Backward views_backward, window_backward, score_backward, packed_backward, blocks_backward;

namespace {

bool has_window(const Problem& p) { return p.window_left >= 0 || p.window_right >= 0; }
bool has_any(const Problem& p) { return has_window(p) || p.softcap > 0 || p.alibi; }
bool has_blocks(const Problem& p) { return p.blocks != attention::BlockPattern::none; }

// One line if there is another extra beside a block mask than those that the rung `blocks` takes.
std::string not_beside_blocks(const Problem& p) {
  if (!has_blocks(p)) return "";
  const std::string why = attention::extras_unsupported(p, blocks_forward.takes);
  return why.empty() ? why : "beside blocks " + why + ": supported there are causal and a sink";
}
std::string forward_unsupported(const Problem& p) {
  const std::string why = not_beside_blocks(p);
  return why.empty() ? wide::unsupported(p, not_8_to_128_nor_own_v) : why;
}
std::string backward_unsupported(const Problem& p) {
  const std::string why = not_beside_blocks(p);
  return why.empty() ? wide::unsupported(p, backward_not_8_to_128_nor_own_v) : why;
}

void forward_of_any(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  if (has_blocks(p)) return blocks_forward.run(p, args, stream);
  if (wide::takes(p)) return views_forward.run(p, args, stream);
  const auto run = p.packed         ? has_any(p) ? run_forward<PackedWithAny> : packed_forward.run
                   : !has_window(p) ? score_forward.run
                   : p.softcap > 0  ? run_forward<CappedWindow>
                   : p.alibi        ? run_forward<WindowWithAlibi>
                                    : window_forward.run;
  run(p, args, stream);
}

void backward_of_any(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  if (has_blocks(p)) return blocks_backward.run(p, args, stream);
  if (wide::takes(p)) return views_backward.run(p, args, stream);
  const auto run = p.packed         ? has_any(p) ? run_backward<PackedWithAny> : packed_backward.run
                   : !has_window(p) ? score_backward.run
                   : p.softcap > 0  ? run_backward<CappedWindow>
                   : p.alibi        ? run_backward<WindowWithAlibi>
                                    : window_backward.run;
  run(p, args, stream);
}

size_t forward_bytes(const Problem& p) {
  return wide::takes(p) ? views_forward.workspace_bytes(p) : forward_workspace(p);
}
size_t backward_bytes(const Problem& p) {
  return wide::takes(p) ? views_backward.workspace_bytes(p) : backward_workspace(p);
}

constexpr unsigned everything = attention::views | attention::own_v | attention::window | attention::softcap |
                                attention::alibi | attention::sink | attention::packed | attention::blocks;

constexpr attention::Forward all_forward = {.unsupported = forward_unsupported,
                                            .workspace_bytes = forward_bytes,
                                            .run = forward_of_any,
                                            .writes_lse = true,
                                            .takes = everything};
constexpr attention::Backward all_backward = {.unsupported = backward_unsupported,
                                              .workspace_bytes = backward_bytes,
                                              .run = backward_of_any,
                                              .takes = everything};

}  // namespace

extern const attention::Rung all;
constinit const attention::Rung all = {.name = "all",
                                       .idea = "every combination of the extras",
                                       .forward = attention::padded<all_forward, wide::next_64_128>,
                                       .backward = attention::padded<all_backward, wide::next_64_128>};

}  // namespace variants
