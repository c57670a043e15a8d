// Where several query heads read one kv head, and a thread block owns keys (chapter 10, 21_shared_backward.cu): in how
// many shares the query heads are worked on, and what lies in the workspace for that.
#pragma once

#include <algorithm>
#include <cmath>

#include "attention/backward_workspace.h"

namespace attention {

// The same problem with a kv head for each share: query head h still reads the kv head that it reads, and the numbers
// of heads, first heads and tiles are those of a share.
__host__ __device__ inline Problem with_shares(Problem p, int shares) {
  p.kv_heads *= shares;
  return p;
}

// How many shares the query heads of a kv head are worked on in: a divisor of their number. That with which the work
// should end first, counted in tiles of queries. S is a shape: D, Br, Bc.
template <class S>
int backward_shares(const Problem& p) {
  const int group = p.heads / p.kv_heads, processors = multiprocessors();
  const int head_tiles = ceil_div(p.seq_q, S::Br), kv_tiles = ceil_div(p.seq_k, S::Bc);
  const bool causal = p.mask == Mask::causal;
  const auto ends = [&](int shares) {
    constexpr double own = 4;        // what a block takes besides: K and V in, dK and dV out
    constexpr double summed = 0.04;  // what its dK and dV in fp32 take, to memory and back, on all multiprocessors
    const double units = double(p.batch) * p.kv_heads * shares, blocks = units * kv_tiles;
    const double longest = double(group) / shares * head_tiles + own;  // block's time
    // Under the causal mask blocks have half as many tiles in the mean, and the short ones come last.
    const double dealt =
        causal ? blocks * (longest + own) / 2 / processors + longest / 2 : std::ceil(blocks / processors) * longest;
    // Without it, blocks of the same queries stand one tile behind the other, as many as run at a time.
    const double behind = causal ? 0 : std::min<double>(kv_tiles, processors / units);
    return std::max(dealt, longest) + behind + (shares > 1 ? summed * blocks : 0);
  };
  constexpr double worth_it = 0.95;  // of the time without shares
  int best = 1;
  double least = worth_it * ends(1);
  for (int shares = 2; shares <= group; shares++)
    if (group % shares == 0 && ends(shares) < least) best = shares, least = ends(shares);
  return best;
}

// The workspace is that of BackwardWorkspace, and behind it [2][B, Hkv, shares, Nk, D] in fp32 if there are several.
template <class S>
size_t bytes_before_shares(const Problem& p, int parts) {
  constexpr size_t alignment = 16;
  return (BackwardWorkspace::bytes(p, S::Br, parts) + alignment - 1) / alignment * alignment;
}
template <class S>
float* parts_of_shares(const Problem& p, void* workspace, int parts) {
  return reinterpret_cast<float*>(static_cast<char*>(workspace) + bytes_before_shares<S>(p, parts));
}
template <class S>
size_t workspace_with_shares(const Problem& p, int parts) {
  const int shares = backward_shares<S>(p);
  return bytes_before_shares<S>(p, parts) + (shares > 1 ? 2 * p.kv_size() * shares * sizeof(float) : 0);
}

}  // namespace attention
