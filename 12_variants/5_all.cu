// Chapter 12, rung 5, all: every combination of the extras.
//
// What changed since 4_sink: no line of the loops. This is the table of kernels for problems with several extras. A
// problem with one takes the kernel of that rung; for what is left a few are enough, which take any window, a sink if
// there is one, and one score function.
//
// Expected limit: an extra that a kernel has and a problem has not costs a comparison here and there.
#include "backward.h"
#include "forward.h"

namespace variants {

extern const attention::Forward views_forward, window_forward, score_forward, sink_forward;
extern const attention::Backward views_backward, window_backward, score_backward;

namespace {

// A sink costs the loop nothing, so that there is one kernel for problems with and without: their pointer says which.
void forward_of_any(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  const unsigned has = attention::extras(p) & ~attention::views;
  const auto run = has == 0                                                ? views_forward.run
                   : has == attention::window                              ? window_forward.run
                   : (has & ~(attention::softcap | attention::alibi)) == 0 ? score_forward.run
                   : has == attention::sink                                ? sink_forward.run
                   : p.softcap > 0                                         ? run_forward<Any<Softcap>>
                   : p.alibi                                               ? run_forward<Any<Alibi>>
                                                                           : run_forward<Any<Linear>>;
  run(p, args, stream);
}

// Sinks change nothing in a backward's loop.
void backward_of_any(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  const bool has_score = p.softcap > 0 || p.alibi, has_window = p.window_left >= 0 || p.window_right >= 0;
  const auto run = !has_window     ? has_score ? score_backward.run : views_backward.run
                   : !has_score    ? window_backward.run
                   : p.softcap > 0 ? run_backward<Any<Softcap>>
                                   : run_backward<Any<Alibi>>;
  run(p, args, stream);
}

constexpr unsigned everything = attention::window | attention::softcap | attention::alibi | attention::sink;

constexpr attention::Forward all_forward = {.unsupported = attention::head_dim_not_8_to_128,
                                            .workspace_bytes = forward_workspace,
                                            .run = forward_of_any,
                                            .writes_lse = true,
                                            .takes = attention::views | everything};
constexpr attention::Backward all_backward = {.unsupported = attention::head_dim_not_8_to_128,
                                              .workspace_bytes = backward_workspace,
                                              .run = backward_of_any,
                                              .takes = attention::views | everything};

}  // namespace

extern const attention::Rung all;
constinit const attention::Rung all = {.name = "all",
                                       .idea = "every combination of the extras",
                                       .forward = attention::padded<all_forward>,
                                       .backward = attention::padded<all_backward>};

}  // namespace variants
