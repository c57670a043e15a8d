// Chapter 07: the backward pass, in rungs. Each is complete in a file of its own, and differs from the one before by
// one idea. O and LSE come from chapter 06's forward.
#include "attention/chapter.h"

namespace flashattn2_fwd {
extern const attention::Rung final_rung;
}

namespace backward {

extern const attention::Rung materialised, recompute, mma, rows32, one_loop, late_dq, atomic, final_rung;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "07_backward",
    .idea = "the backward pass: P once more from Q, K and the saved LSE, and the gradients in memory linear in N",
    .rungs = {materialised, recompute, mma, rows32, one_loop, late_dq, atomic, final_rung},
    .starts_from = &flashattn2_fwd::final_rung};

}  // namespace backward
