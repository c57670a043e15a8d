// What a kernel has made of parts of the keys becomes O and LSE: the second kernel of most rungs of this chapter.
#pragma once

#include "attention/rung.h"

namespace split_kv {

// args.o and args.lse from so many parts of each row: O of the part in fp32, and the base-2 logarithm of its sum of
// 2^x.
void merge(const attention::Problem& p, int parts,
           const float* o_parts,    // [B, H, Nq, parts, D]
           const float* lse_parts,  // [B, H, Nq, parts], -inf where a part shows the row no key
           const attention::ForwardArgs& args, cudaStream_t stream);

}  // namespace split_kv
