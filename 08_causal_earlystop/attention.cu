// Chapter 08: what the causal mask throws away is not computed. Each rung is a complete kernel in a file of its own,
// and differs from the one before by one idea; all three have the same tiles.
#include "attention/chapter.h"

namespace causal_earlystop {

extern const attention::Rung masked, earlystop, balanced;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "08_causal_earlystop",
    .idea =
        "under a causal mask nearly half of the tiles are hidden: they are not computed, and the longest blocks "
        "start first",
    .rungs = {masked, earlystop, balanced}};

}  // namespace causal_earlystop
