// Chapter 13: attention in eight bits. The loop is in forward.h and starts from chapter 10's `dynamic`; each rung is
// a file that changes one thing in it. What makes eight bits of the inputs stands in quantize.h and quantize_tiles.h.
// Compiled for compute capability 9.0a, as chapter 10 is.
#include "attention/chapter.h"

namespace fp8 {

extern const attention::Rung direct, inside, lazy, unscanned, turns, held, sums, blocks, rotated, offset, followed;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "13_fp8",
    .idea = "numbers of eight bits: half the bytes and twice the products, for an error that has to be known",
    .rungs = {direct, inside, lazy, unscanned, turns, held, sums, blocks, rotated, offset, followed},
    .general = false};  // its results are less exact than anybody expects who has not asked for them

}  // namespace fp8
