// Chapter 10: what Hopper adds, one instruction at a time. Each rung is a complete kernel in a file of its own, and
// differs from the one before by one idea. The first starts from chapter 08's `balanced`. They are compiled for compute
// capability 9.0a: the instructions are Hopper's, and no GPU before or after it has all of them.
#include "attention/chapter.h"

namespace hopper {

extern const attention::Rung tma, wgmma_rung, warpspec, overlap, pingpong, persistent, wgmma_backward, bulk_backward,
    ordered_backward;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "10_hopper",
    .idea =
        "hardware copies tiles and multiplies them while the threads do something else: who waits for whom is the "
        "whole program",
    .rungs = {tma, wgmma_rung, warpspec, overlap, pingpong, persistent, wgmma_backward, bulk_backward,
              ordered_backward},
    .starts_from = &persistent};

}  // namespace hopper
