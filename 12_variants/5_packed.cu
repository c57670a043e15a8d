// Chapter 12, rung 5, packed: sequences of unequal length, one behind the other, and no padding.
//
// Documents, prompts, images: what a model is trained on and asked has every length. In a tensor [B, H, N, D] N is the
// longest, and the rest is padding, which costs as much as tokens do. Packed, the tensors are [total, H, D], and
// cu_seqlens says where each sequence begins.
//
// What changed since 1_views: a thread block finds its sequence first (packed.h), and moves its tensors to where that
// one begins. Then it solves the sequence's own problem, with its own Nq and Nk, and no line of the loops knows that
// there are others.
//   - Which tile a block takes is read from a list that a small kernel has made, the longest sequences' tiles first:
//     what starts last is short.
//   - Backward: what is kept for each tile of queries has a place for as many tiles as there can be. Those of sequence
//     b begin with number begin / Br + b, so nobody has to count them.
//
// Expected limit: that of 1_views; and a tile is as often half empty as a sequence ends.
#include "backward.h"
#include "forward.h"

namespace variants {

extern const attention::Forward views_forward;
extern const attention::Backward views_backward;

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
