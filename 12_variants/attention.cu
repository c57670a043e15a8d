// Chapter 12: what models ask of attention today. Each rung adds one extra to `views`, forward and backward, and `all`
// takes any of them together. The loops are in forward.h and backward.h, for Hopper in hopper_forward.h and
// hopper_backward.h; the extras are in extras.h.
#include "attention/chapter.h"

namespace variants {

extern const attention::Rung views, window, score, sink, packed, blocks, all;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "12_variants",
    .idea =
        "views, windows, score functions, sinks, packed sequences and block masks, each for the price of what it adds",
    .rungs = {views, window, score, sink, packed, blocks, all},
    .starts_from = &all,
    .general = false};  // where nobody names a chapter, it takes the problems that have extras

}  // namespace variants
