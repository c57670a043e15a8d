// Chapter 10: what Hopper adds, one instruction at a time. Each rung is a complete kernel in a file of its own, and
// differs from the one before by one idea, and so is each backward. The first starts from chapter 08's `balanced`. They
// are compiled for compute capability 9.0a: the instructions are Hopper's, and no GPU before or after it has all of
// them.
#include "attention/chapter.h"

namespace hopper {

extern const attention::Rung tma, wgmma_rung, warpspec, overlap, pingpong, persistent, dynamic, narrow, ahead, rounds,
    fitted, prompt;
extern const attention::Backward warpspec_backward, bulk_backward, ordered_backward, ahead_backward, fetched_backward,
    shared_backward;

namespace {

attention::Rung both(attention::Rung rung, const attention::Backward& backward) {
  rung.backward = backward;
  return rung;
}

}  // namespace

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "10_hopper",
    .idea =
        "hardware copies tiles and multiplies them while the threads do something else: who waits for whom is the "
        "whole program",
    .rungs = {tma,
              wgmma_rung,
              both(warpspec, warpspec_backward),
              overlap,
              pingpong,
              persistent,
              dynamic,
              narrow,
              {.name = "bulk",
               .idea = "dQ leaves by bulk reductions, 16 KB each, that another warp starts",
               .backward = bulk_backward},
              {.name = "ordered",
               .idea = "the parts of dQ are added up in one order, and the last block converts the sum: the same bits "
                       "in every run",
               .backward = ordered_backward},
              both(ahead, ahead_backward),
              {.name = "fetched",
               .idea = "what the other blocks have added up is in shared memory when the last block needs it",
               .backward = fetched_backward},
              rounds,
              fitted,
              {.name = "shared",
               .idea = "several blocks share the query heads that read one kv head, where that makes more blocks",
               .backward = shared_backward},
              prompt},
    .starts_from = &narrow};

}  // namespace hopper
