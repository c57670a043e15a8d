// Chapter 09: RoPE, beside the attention kernel and inside it. Each rung is complete in a file of its own, its backward
// in another, and differs from the one before by one idea; all have chapter 08's tiles and order.
#include "attention/chapter.h"

namespace rope_fused {

extern const attention::Rung separate, fused, prerotated, overlapped;
extern const attention::Backward separate_backward, prerotated_backward;

namespace {

attention::Rung both(attention::Rung rung, const attention::Backward& backward) {
  rung.backward = backward;
  return rung;
}

}  // namespace

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "09_rope_fused",
    .idea =
        "RoPE where it costs least: what a thread block meets once is rotated on the "
        "chip, what is met often in memory, once",
    .rungs = {both(separate, separate_backward), fused, both(prerotated, prerotated_backward), overlapped},
    .starts_from = &overlapped,
    .rope = true};

}  // namespace rope_fused
