// Chapter 12, rung 3, score: a function of the score, and its derivative.
//
// A softcap bends scores, so that none is beyond +-softcap; ALiBi takes away a little for every key of distance, and so
// tells the positions. Both happen between the product and the softmax, where a score is in a register.
//
// What changed since 1_views: `score(s, distance)` stands where scale * s stood, a type that the kernel is compiled
// with. The backward makes the same scores again, and dS has one more factor, the derivative:
//
//   softcap   s' = c tanh(s / c)      ds'/ds = 1 - tanh^2(s / c) = 1 - (s' / c)^2: made of the score that is there
//   ALiBi     s' = s - slope * |d|    ds'/ds = 1
//
// extras.h has both, and says how to add a third.
//
// Expected limit: a softcap takes two more instructions of the special function unit for every score, an exp2 and a
// reciprocal, beside the softmax's one; and in the backward a logarithm, by which P tells its score again. On Hopper
// it takes none of these where no score is beyond its cap, but seven multiply-adds.
#include "backward.h"
#include "forward.h"

namespace variants {

extern const attention::Forward views_forward;
extern const attention::Backward views_backward;

namespace {

void forward_of_score(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  (p.softcap > 0 ? run_forward<Capped> : p.alibi ? run_forward<WithAlibi> : views_forward.run)(p, args, stream);
}
void backward_of_score(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  (p.softcap > 0 ? run_backward<Capped> : p.alibi ? run_backward<WithAlibi> : views_backward.run)(p, args, stream);
}

}  // namespace

extern const attention::Forward score_forward;
extern const attention::Backward score_backward;
constinit const attention::Forward score_forward = {
    .unsupported = not_8_to_128_nor_own_v,
    .workspace_bytes = forward_workspace,
    .run = forward_of_score,
    .writes_lse = true,
    .takes = attention::views | attention::own_v | attention::softcap | attention::alibi};
constinit const attention::Backward score_backward = {
    .unsupported = backward_not_8_to_128_nor_own_v,
    .workspace_bytes = backward_workspace,
    .run = backward_of_score,
    .takes = attention::views | attention::own_v | attention::softcap | attention::alibi};

extern const attention::Rung score;
constinit const attention::Rung score = {.name = "score",
                                         .idea = "scores go through a function, and gradients through its derivative",
                                         .forward = attention::padded<score_forward, attention::next_64_128_192_256>,
                                         .backward = attention::padded<score_backward, attention::next_64_128_192_256>};

}  // namespace variants
