// Chapter 11: keys in parts. One thread block a head is too few where there is one query and there are many keys, so
// several blocks share the keys of a head, and what each makes of its part is merged. Each rung is a complete kernel in
// a file of its own, and differs from the one before by one idea. The first is the last forward of chapter 08, as it
// is: its thread blocks have 128 rows, and most of them stand empty.
#include "attention/chapter.h"

namespace causal_earlystop {
extern const attention::Rung balanced;
}

namespace split_kv {

extern const attention::Rung split, packed, narrow, deep, tall, warpgroup, even, chosen;

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "11_split_kv",
    .idea = "attention over a part of the keys is O and LSE, and two parts merge exactly: so keys are dealt out",
    .rungs = {{.name = "whole",
               .idea = "the last forward of chapter 08: one thread block goes along all keys of a head",
               .forward = causal_earlystop::balanced.forward},
              split,
              packed,
              narrow,
              deep,
              tall,
              warpgroup,
              even,
              chosen},
    .general = false};  // where queries are many, chapters 10 and 08 are as fast, or faster

}  // namespace split_kv
