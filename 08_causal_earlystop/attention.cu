// Chapter 08: what the causal mask throws away is not computed. Each rung is a complete kernel in a file of its own,
// its backward in another, and differs from the one before by one idea; all have the same tiles. The first rung is the
// last kernel of chapter 06, as it is, with 07's `atomic` for a backward. Its limit is the work itself: query i of N
// sees i + 1 keys, half of all on average, but S, P and O are computed with all N.
#include "attention/chapter.h"

namespace flashattn2_fwd {
extern const attention::Rung final_rung;
}

namespace backward {
extern const attention::Rung atomic;
}

namespace causal_earlystop {

extern const attention::Rung earlystop, balanced;
extern const attention::Backward earlystop_backward, balanced_backward, ordered_backward;

namespace {

attention::Rung both(attention::Rung rung, const attention::Backward& backward) {
  rung.backward = backward;
  return rung;
}

}  // namespace

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "08_causal_earlystop",
    .idea =
        "under a causal mask nearly half of the tiles are hidden: they are not computed, and the longest blocks "
        "start first",
    .rungs =
        {{.name = "masked",
          .idea =
              "the last kernels of chapters 06 and 07: the mask is applied to every tile, and every tile is computed",
          .forward = flashattn2_fwd::final_rung.forward,
          .backward = backward::atomic.backward},
         both(earlystop, earlystop_backward),
         both(balanced, balanced_backward),
         {.name = "ordered",
          .idea = "the parts of dQ are added up in order, up to the diagonal: the same bits in every run",
          .backward = ordered_backward}},
    .starts_from = &balanced};

}  // namespace causal_earlystop
