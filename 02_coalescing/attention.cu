// Chapter 02: the three kernels of chapter 01, remapped so that the addresses of a warp are consecutive, in three
// rungs. Each is a complete step in a file of its own, and differs from the one before by one idea.
#include "attention/chapter.h"

namespace coalescing {

extern const attention::Rung mapping, vectors, warp_softmax;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "02_coalescing",
    .idea = "the same three kernels with a warp per row, so that the 32 addresses of every load are consecutive",
    .rungs = {mapping, vectors, warp_softmax}};

}  // namespace coalescing
