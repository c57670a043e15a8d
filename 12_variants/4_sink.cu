// Chapter 12, rung 4, sink: one more term in every row's sum.
//
// A softmax has to give its whole weight away, also where no key deserves it. Models then learn to put it on the first
// key. A sink is a place for it: a number for every head, the score of a key that is not there and whose value is zero.
//
//   l = sum_j exp(S_ij) + exp(sink)      O = P V as before      LSE = log(l)
//
// What changed since 1_views: forward, the end. l gets its last term, and so does LSE; nothing is multiplied more
// often. Backward, nothing at all in the loop, since P = exp(S - LSE) knows the sink from LSE. The sink's own gradient
// is that of a key with V = 0: dP = 0, and so -sum_i exp(sink - LSE_i) delta_i, a small kernel of its own.
//
// Expected limit: that of 1_views.
#include "backward.h"  // whose end adds the sink's gradient
#include "forward.h"   // whose end is end_of_row, in extras.h

namespace variants {

extern const attention::Forward views_forward;
extern const attention::Backward views_backward;

namespace {

void forward_with_sink(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  views_forward.run(p, args, stream);
}

void backward_with_sink(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  views_backward.run(p, args, stream);
}

}  // namespace

extern const attention::Forward sink_forward;
extern const attention::Backward sink_backward;
constinit const attention::Forward sink_forward = {.unsupported = not_8_to_128_nor_own_v,
                                                   .workspace_bytes = forward_workspace,
                                                   .run = forward_with_sink,
                                                   .writes_lse = true,
                                                   .takes = attention::views | attention::own_v | attention::sink};
constinit const attention::Backward sink_backward = {.unsupported = backward_not_8_to_128_nor_own_v,
                                                     .workspace_bytes = backward_workspace,
                                                     .run = backward_with_sink,
                                                     .takes = attention::views | attention::own_v | attention::sink};

extern const attention::Rung sink;
constinit const attention::Rung sink = {.name = "sink",
                                        .idea = "each head has a place for the weight that no key deserves",
                                        .forward = attention::padded<sink_forward, attention::next_64_128_192_256>,
                                        .backward = attention::padded<sink_backward, attention::next_64_128_192_256>};

}  // namespace variants
