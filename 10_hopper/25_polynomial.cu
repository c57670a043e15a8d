// Chapter 10, rung 25, polynomial: at D = 64 FMA instructions make an eighth of the exponentials.
//
// No kernel of its own: that of late, with another exponentiate_in_place() in its loop (device/lazy_softmax.h).
//
// What changed since late: one exponential in eight is made by exp2_polynomial() (device/math.h). It takes eight
// instructions where the exp unit needs one, but other units run them. Its error is less than a fifth of that of
// rounding P to fp16. It makes 0 of NaN. But the vote whether m has to rise sees every NaN, and after it keep_nan()
// looks for those that would get lost. l carries them to the end: the loop has no instruction for it.
//
// Expected limit: as before. An exp unit makes 16 results a clock, so with an eighth fewer a tile keeps it busy for 448
// clocks of 512; but each consumer's own way through a tile gets longer.
#include "attention/padded.h"

namespace hopper {

using attention::ForwardArgs;
using attention::Problem;

extern const attention::Forward wide_forward;  // for D = 192 and 256
void forward_late(const Problem& p, const ForwardArgs& args, cudaStream_t stream, bool polynomial);

namespace {

constexpr attention::Forward unpadded = {
    attention::not_for_hopper_to_256, [](const Problem&) { return sizeof(int); },
    [](const Problem& p, const ForwardArgs& args, cudaStream_t stream) { forward_late(p, args, stream, true); }, true};

}  // namespace

extern const attention::Rung polynomial;
constinit const attention::Rung polynomial = {
    .name = "polynomial",
    .idea = "at D = 64 FMA instructions make an eighth of the exponentials",
    .forward = attention::padded<unpadded, attention::next_in_pages, wide_forward>};

}  // namespace hopper
