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
// Expected limit: that of chapter 08 or 10. A row of 128 or 256 bytes is whole sectors where it begins with one.
// Head dims above 128 have the kernels of chapter 08 or 10 themselves (wide.h).
#include "backward.h"
#include "forward.h"
#include "wide.h"

namespace variants {
namespace {

std::string forward_unsupported(const Problem& p) { return wide::unsupported(p, not_8_to_128_nor_own_v); }
std::string backward_unsupported(const Problem& p) { return wide::unsupported(p, backward_not_8_to_128_nor_own_v); }
size_t forward_bytes(const Problem& p) { return wide::takes(p) ? wide::forward_workspace(p) : forward_workspace(p); }
size_t backward_bytes(const Problem& p) { return wide::takes(p) ? wide::backward_workspace(p) : backward_workspace(p); }

void forward_of_views(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  (wide::takes(p) ? wide::run_forward : run_forward<Plain>)(p, args, stream);
}
void backward_of_views(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  (wide::takes(p) ? wide::run_backward : run_backward<Plain>)(p, args, stream);
}

}  // namespace

extern const attention::Forward views_forward;
extern const attention::Backward views_backward;
constinit const attention::Forward views_forward = {.unsupported = forward_unsupported,
                                                    .workspace_bytes = forward_bytes,
                                                    .run = forward_of_views,
                                                    .writes_lse = true,
                                                    .takes = attention::views | attention::own_v};
constinit const attention::Backward views_backward = {.unsupported = backward_unsupported,
                                                      .workspace_bytes = backward_bytes,
                                                      .run = backward_of_views,
                                                      .takes = attention::views | attention::own_v};

extern const attention::Rung views;
constinit const attention::Rung views = {.name = "views",
                                         .idea = "tensors lie as their strides say, and nobody has to copy them",
                                         .forward = attention::padded<views_forward, wide::next_64_128>,
                                         .backward = attention::padded<views_backward, wide::next_64_128>};

}  // namespace variants
