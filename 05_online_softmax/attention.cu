// Chapter 05: FlashAttention, in two rungs. Each is a complete kernel in a file of its own.
#include "attention/chapter.h"

namespace online_softmax {

extern const attention::Rung online, tiles, example;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "05_online_softmax",
    .idea = "K and V stream by in tiles while running maxima and sums keep the softmax right: memory linear in N",
    .rungs = {online, tiles},
    .example = &example};

}  // namespace online_softmax
