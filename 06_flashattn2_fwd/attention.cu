// Chapter 06: FlashAttention-2 forward on tensor cores, in eleven rungs. Each is a complete kernel in a file of its
// own, and differs from the one before by one idea.
#include "attention/chapter.h"

namespace flashattn2_fwd {

extern const attention::Rung mma, swizzle, pipeline, rows32, interleave, lazy, addresses, whole_rows, three_blocks,
    two_tiles, final_rung;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "06_flashattn2_fwd",
    .idea =
        "tensor cores: one warp carries its query rows from Q to O in registers, and the rest is kept out of its way",
    .rungs = {mma, swizzle, pipeline, rows32, interleave, lazy, addresses, whole_rows, three_blocks, two_tiles,
              final_rung}};

}  // namespace flashattn2_fwd
