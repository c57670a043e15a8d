// Keys in parts: what chapter 11's kernels for them share. Each makes O and LSE of every part of the keys, in the
// workspace, and the kernel in the chapter's merge.cu merges them into one O and LSE.
#pragma once

#include <algorithm>

#include "attention/rung.h"
#include "device/limits.h"

namespace key_parts {

using attention::Problem;

// The rows of all heads that share a kv head, one head after the other: as they lie in memory.
__host__ __device__ inline int group_rows(const Problem& p) { return p.heads / p.kv_heads * p.seq_q; }

// As many parts as make at most this many thread blocks for each multiprocessor, one block for each tile of rows and
// part. But at least one part, and no more than there are pieces of keys.
inline int number_of_parts(unsigned tiles, int blocks, int pieces) {
  return std::clamp(int(multiprocessors() * blocks / tiles), 1, pieces);
}

// The results of the parts.
struct Parts {
  float* o;    // [B, H, Nq, parts, D]
  float* lse;  // [B, H, Nq, parts], base 2

  Parts(const Problem& p, int parts, void* workspace)
      : o(static_cast<float*>(workspace)), lse(o + p.lse_size() * parts * p.head_dim) {}
  static size_t bytes(const Problem& p, int parts) { return p.lse_size() * parts * (p.head_dim + 1) * sizeof(float); }
};

// args.o and args.lse from so many parts of each row.
void merge(const Problem& p, int parts, const Parts& from, const attention::ForwardArgs& args, cudaStream_t stream);

}  // namespace key_parts
