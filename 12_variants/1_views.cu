// Chapter 12, rung 1, views: chapter 08's kernels, or chapter 10's on Hopper, on tensors that lie as their strides say.
//
// The projections of a model make Q, K and V as [B, N, H, D], often all three in one tensor. Without strides they would
// have to be copied to [B, H, N, D] and O back again: four tensors read and written, for nothing.
//
// What changed since chapter 08: a head's pointer is batch * strides.batch + head * strides.head, and a row lies
// strides.row elements behind the one before. The D elements of a row stay together: they are copied 16 bytes at a
// time.
//
// On Hopper the strides are those of tensor maps, and no thread computes with them.
//
// Expected limit: that of chapter 08 or 10. A row of 128 or 256 bytes is whole sectors wherever it begins.
#include "backward.h"
#include "forward.h"

namespace variants {

extern const attention::Forward views_forward;
extern const attention::Backward views_backward;
constinit const attention::Forward views_forward = {.unsupported = not_8_to_128_nor_own_v,
                                                    .workspace_bytes = forward_workspace,
                                                    .run = run_forward<Plain>,
                                                    .writes_lse = true,
                                                    .takes = attention::views | attention::own_v};
constinit const attention::Backward views_backward = {.unsupported = backward_not_8_to_128_nor_own_v,
                                                      .workspace_bytes = backward_workspace,
                                                      .run = run_backward<Plain>,
                                                      .takes = attention::views | attention::own_v};

extern const attention::Rung views;
constinit const attention::Rung views = {.name = "views",
                                         .idea = "tensors lie as their strides say, and nobody has to copy them",
                                         .forward = attention::padded<views_forward, attention::next_64_128_192_256>,
                                         .backward = attention::padded<views_backward, attention::next_64_128_192_256>};

}  // namespace variants
