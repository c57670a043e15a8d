// Chapter 03: both products in tiles, through shared memory and registers, in three rungs. Each is a complete step in a
// file of its own, and differs from the one before by one idea.
#include "attention/chapter.h"

namespace tiling {

extern const attention::Rung tiles, registers, padded;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "03_tiling",
    .idea = "both products in 64 x 64 tiles, through shared memory without bank conflicts and 8 x 4 sums per thread",
    .rungs = {tiles, registers, padded}};

}  // namespace tiling
