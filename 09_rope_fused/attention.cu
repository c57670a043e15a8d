// Chapter 09: RoPE, beside the attention kernel and inside it. Each rung is complete in a file of its own, and differs
// from the one before by one idea; all three have chapter 08's tiles and order.
#include "attention/chapter.h"

namespace rope_fused {

extern const attention::Rung separate, prerotated, fused;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {.name = "09_rope_fused",
                                    .idea = "Q and K are rotated where they already are: on the chip",
                                    .rungs = {separate, prerotated, fused},
                                    .rope = true};

}  // namespace rope_fused
