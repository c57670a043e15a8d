// Chapter 12, rung 6, all: every combination of the extras.
//
// What changed since 5_packed: no line of the loops. This is the table of kernels. A problem without a window takes
// that of score or views; one with a window and no score function takes that of window; two more have both. Each of
// them takes a sink if there is one. Packed sequences take that of packed, or one kernel for every window and score
// function.
//
// Expected limit: an extra that a kernel has and a problem has not costs a comparison here and there.
#include "backward.h"
#include "forward.h"

namespace variants {

extern const attention::Forward window_forward, score_forward, packed_forward;
extern const attention::Backward window_backward, score_backward, packed_backward;

namespace {

bool has_window(const Problem& p) { return p.window_left >= 0 || p.window_right >= 0; }
bool has_any(const Problem& p) { return has_window(p) || p.softcap > 0 || p.alibi; }

void forward_of_any(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  const auto run = p.packed         ? has_any(p) ? run_forward<PackedWithAny> : packed_forward.run
                   : !has_window(p) ? score_forward.run
                   : p.softcap > 0  ? run_forward<CappedWindow>
                   : p.alibi        ? run_forward<WindowWithAlibi>
                                    : window_forward.run;
  run(p, args, stream);
}

void backward_of_any(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  const auto run = p.packed         ? has_any(p) ? run_backward<PackedWithAny> : packed_backward.run
                   : !has_window(p) ? score_backward.run
                   : p.softcap > 0  ? run_backward<CappedWindow>
                   : p.alibi        ? run_backward<WindowWithAlibi>
                                    : window_backward.run;
  run(p, args, stream);
}

constexpr unsigned everything = attention::views | attention::own_v | attention::window | attention::softcap |
                                attention::alibi | attention::sink | attention::packed;

constexpr attention::Forward all_forward = {.unsupported = not_8_to_128_nor_own_v,
                                            .workspace_bytes = forward_workspace,
                                            .run = forward_of_any,
                                            .writes_lse = true,
                                            .takes = everything};
constexpr attention::Backward all_backward = {.unsupported = backward_not_8_to_128_nor_own_v,
                                              .workspace_bytes = backward_workspace,
                                              .run = backward_of_any,
                                              .takes = everything};

}  // namespace

extern const attention::Rung all;
constinit const attention::Rung all = {.name = "all",
                                       .idea = "every combination of the extras",
                                       .forward = attention::padded<all_forward, attention::next_64_128_192_256>,
                                       .backward = attention::padded<all_backward, attention::next_64_128_192_256>};

}  // namespace variants
