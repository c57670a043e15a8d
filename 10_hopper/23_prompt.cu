// Chapter 10, rung 23, prompt: kernels that are not needed are not launched, and each of the others starts while the
// one before it ends.
//
// No kernel of its own: the forward is fitted's and the backward is cyclic's.
//
// What changed since those: a kernel is launched as dependent on the one before it (chapter 09, rung `overlapped`): it
// is on the multiprocessors, with its mbarriers ready, when that one ends. The first kernel of a forward depends on
// whatever kernel the caller launched before: no thread reads or writes global memory before it has waited. In a
// forward where every thread block has one tile, nobody counts tiles, and the kernel that sets the count to zero is not
// launched.
//
// Expected limit: as before; for short problems, what a launch takes.
#include "attention/padded.h"
#include "device/launch.h"

namespace hopper {

using attention::BackwardArgs;
using attention::ForwardArgs;
using attention::Problem;

extern const attention::Forward wide_forward;  // for D = 192 and 256
extern const attention::Backward wide_backward;
void forward_fitted(const Problem& p, const ForwardArgs& args, cudaStream_t stream, bool prompt);
void backward_shared(const Problem& p, const BackwardArgs& args, cudaStream_t stream, bool cyclic, Blocks after);
size_t workspace_of_shared(const Problem& p);

namespace {

constexpr attention::Forward forward = {
    attention::not_for_hopper_to_256, [](const Problem&) { return sizeof(int); },
    [](const Problem& p, const ForwardArgs& args, cudaStream_t stream) { forward_fitted(p, args, stream, true); },
    true};
constexpr attention::Backward backward = {attention::not_for_hopper_to_256, workspace_of_shared,
                                          [](const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
                                            backward_shared(p, args, stream, true, Blocks::dependent);
                                          }};

}  // namespace

extern const attention::Rung prompt;
constinit const attention::Rung prompt = {
    .name = "prompt",
    .idea = "kernels of a call start while the one before ends, and one that is not needed is not launched",
    .forward = attention::padded<forward, attention::next_in_pages, wide_forward>,
    .backward = attention::padded<backward, attention::next_64_128_192_256, wide_backward>};

}  // namespace hopper
