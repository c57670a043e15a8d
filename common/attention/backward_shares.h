// Where several query heads read one kv head, and a thread block owns keys (chapter 10, 21_shared_backward.cu): into
// how many shares the query heads are divided, and what lies in the workspace for that.
#pragma once

#include <algorithm>
#include <cmath>

#include "attention/backward_workspace.h"
#include "attention/view.h"
#include "device/dependent_launch.h"
#include "device/numeric.h"

namespace attention {

// The same problem with a kv head for each share of the query heads: numbers of heads, first heads and tiles that are
// computed from it are those of a share. Share s reads K and V of kv head s / shares.
__host__ __device__ inline Problem with_shares(Problem p, int shares) {
  p.kv_heads *= shares;
  return p;
}

// How many shares the query heads of a kv head are divided into: the divisor of their number with which the work should
// end first, by an estimate in tiles of queries. S is a shape: D, Br, Bc.
template <class S>
int backward_shares(const Problem& p) {
  const int group = p.heads / p.kv_heads, processors = multiprocessors();
  const int head_tiles = ceil_div(p.seq_q, S::Br), kv_tiles = ceil_div(p.seq_k, S::Bc);
  const bool causal = p.mask == Mask::causal;
  const auto ends = [&](int shares) {
    constexpr double own = 4;        // what a block takes beside its tiles: K and V in, dK and dV out
    constexpr double summed = 0.04;  // by how much a block's dK and dV in fp32, to memory and back, delay the end
    const double units = double(p.batch) * p.kv_heads * shares, blocks = units * kv_tiles;
    const double longest = double(group) / shares * head_tiles + own;  // time of a block with all queries
    // Under the causal mask blocks have half as many tiles in the mean, and the short ones come last.
    const double dealt =
        causal ? blocks * (longest + own) / 2 / processors + longest / 2 : std::ceil(blocks / processors) * longest;
    // Without a mask, blocks that read the same queries run one tile behind the other, as many as run at a time.
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

// The workspace is that of BackwardWorkspace, and if there are several shares, [2][B, Hkv, shares, Nk, D] in fp32 too.
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

#if defined(WORKBOOK_SIMT) || defined(__CUDACC__)

constexpr int sum_threads = 256;

// Adds up the shares of dK and dV, always in the same order: 8 elements of a row a thread.
template <class T, int D>
__global__ void __launch_bounds__(sum_threads)
    sum_shares(size_t rows,  // of all kv heads together
               int kv_heads, int seq_k, int shares,
               const float* parts,  // [2][B, Hkv, shares, Nk, D], of dV first
               View<T> dk,          // [B, Hkv, Nk, D]
               View<T> dv)          // [B, Hkv, Nk, D]
{
  const size_t thread = size_t(blockIdx.x) * sum_threads + threadIdx.x, row = thread / (D / 8) % rows;
  const int piece = thread % (D / 8);
  const bool is_dk = thread / (D / 8) >= rows;
  const float* from =
      parts + (is_dk ? rows * shares * D : 0) + (row / seq_k * shares * seq_k + row % seq_k) * D + piece * 8;
  grid_dependency_wait();  // the shares are in global memory
  if (thread >= 2 * rows * (D / 8)) return;
  float sum[8] = {};
#pragma unroll 4
  for (int share = 0; share < shares; share++, from += size_t(seq_k) * D)
    for (int half = 0; half < 2; half++) {
      const float4 x = reinterpret_cast<const float4*>(from)[half];
      sum[4 * half] += x.x, sum[4 * half + 1] += x.y, sum[4 * half + 2] += x.z, sum[4 * half + 3] += x.w;
    }
  Pack8<T> rounded;
  for (int e = 0; e < 8; e++) rounded.x[e] = from_float<T>(sum[e]);
  const View<T> to = is_dk ? dk : dv;
  store_pack8(to.at_row(to.of_head(int(row / seq_k), kv_heads) + piece, int(row % seq_k)), rounded);
}

// Launches sum_shares if there are several shares. With Blocks::dependent it starts while the kernel before it ends.
template <class T, int D>
void launch_sum_shares(const Problem& p, int shares, Blocks after, cudaStream_t stream, const float* parts,
                       const View<T>& dk, const View<T>& dv) {
  const size_t rows = size_t(p.batch) * p.kv_heads * p.seq_k;
  if (shares > 1)
    launch_grid(sum_shares<T, D>, {unsigned(ceil_div(2 * rows * (D / 8), sum_threads)), sum_threads, 0, stream}, after,
                rows, p.kv_heads, p.seq_k, shares, parts, dk, dv);
}
template <class T, int D>
void launch_sum_shares(const Problem& p, int shares, Blocks after, cudaStream_t stream, const float* parts, T* dk,
                       T* dv) {
  const auto of = [&](T* data) { return view<T>(p, data, {}, p.kv_heads, p.seq_k, D); };
  launch_sum_shares<T, D>(p, shares, after, stream, parts, of(dk), of(dv));
}

#endif

}  // namespace attention
