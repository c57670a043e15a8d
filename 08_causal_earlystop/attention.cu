// Chapter 08: what the causal mask throws away is not computed. Each rung is a complete kernel in a file of its own,
// its backward in another, and differs from the one before by one idea; all have the same tiles.
#include "attention/chapter.h"

namespace backward {
extern const attention::Rung atomic;  // chapter 07's
}

namespace causal_earlystop {

extern const attention::Rung masked, earlystop, balanced;
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
    .rungs = {both(masked, backward::atomic.backward),
              both(earlystop, earlystop_backward),
              both(balanced, balanced_backward),
              {.name = "ordered",
               .idea = "the parts of dQ are added up in order, up to the diagonal: the same bits in every run",
               .backward = ordered_backward}},
    .starts_from = &balanced};

}  // namespace causal_earlystop
