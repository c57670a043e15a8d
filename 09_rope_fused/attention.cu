// Chapter 09: RoPE, beside the attention kernel and inside it. Each rung is complete in a file of its own, and differs
// from the one before by one idea; all three have chapter 08's tiles and order.
#include "attention/chapter.h"

namespace rope_fused {

extern const attention::Rung separate, fused, prerotated;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {.name = "09_rope_fused",
                                    .idea =
                                        "RoPE where it costs least: Q is rotated on the chip, where each row is met "
                                        "once, K in memory, where it is met often",
                                    .rungs = {separate, fused, prerotated},
                                    .rope = true};

}  // namespace rope_fused
