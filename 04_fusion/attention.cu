// Chapter 04: one kernel instead of three, in three rungs. Each is a complete kernel in a file of its own, and differs
// from the one before by one idea.
#include "attention/chapter.h"

namespace fusion {

extern const attention::Rung fused, streamed, unrolled;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "04_fusion",
    .idea = "one kernel: whole rows of scores stay in shared memory, and S and P never reach global memory",
    .rungs = {fused, streamed, unrolled}};

}  // namespace fusion
