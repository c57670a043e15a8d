// The kernel of an exercise of chapter 02: a warp has a row of O, and each lane a key.
//
//   attend   m, then P and O of a query row     a warp per row, eight rows a thread block
//
// S is never stored. A warp walks over the row's keys twice, 32 of them at a time, one to a lane, and makes every score
// twice: first for m, the largest of them, then for P = exp(S - m). For O the lanes are columns: they take the 32 P
// from one another, key by key, and each adds that key's row of V to its own columns.
//
// What is different from chapter 02's kernels: one launch, and no matrix in global memory.
//
// Expected limit: the load unit. 32 lanes read 32 rows of K, as in chapter 01; a row of V they read side by side.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace lanes {

using attention::ForwardArgs;
using attention::Problem;

constexpr int Br = 8, threads = 32 * Br;  // query rows of a thread block, one to a warp

template <class T, int D>
__global__ void __launch_bounds__(threads) attend(Problem p,
                                                  const T* q,  // [B, H, Nq, D]
                                                  const T* k,  // [B, Hkv, Nk, D]
                                                  const T* v,  // [B, Hkv, Nk, D]
                                                  T* o)        // [B, H, Nq, D]
{
  const int64_t row = int64_t(blockIdx.x) * Br + threadIdx.x / 32;  // over all batches and heads: (b * H + h) * Nq + i
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  const int head = int(row / p.seq_q), lane = threadIdx.x % 32;
  const int keys = p.visible_keys(int(row % p.seq_q));  // that the row sees: the first ones
  const T* q_row = q + row * D;
  const T* k_head = k + int64_t(p.kv_head(head)) * p.seq_k * D;
  const T* v_head = v + int64_t(p.kv_head(head)) * p.seq_k * D;
  const Watched watched = {row, 0, 1, p.seq_k};

  // Of a key that the row does not see -inf, and so P = 0.
  const auto score = [&](int j) {
    float sum = 0;
    for (int d = 0; d < D && j < keys; ++d) sum += to_float(q_row[d]) * to_float(k_head[int64_t(j) * D + d]);
    return j < keys ? p.scale * sum : -INFINITY;
  };

  watch_step("1. S = Q K^T, and m = rowmax S");
  float m = -INFINITY;  // subtracted from every score, so that exp cannot overflow
  for (int j = lane; j < keys; j += 32) m = fmaxf(m, score(j));
  m = warp_max(m);
  if (m == -INFINITY) m = 0;  // the row sees no key, or none that counts: keeps -inf - -inf = NaN out of exp
  watch_step("2. P = exp(S - m), and l; O += P V");
  float l = 0, o_reg[D / 32] = {};  // columns lane, lane + 32, ..
  for (int j0 = 0; j0 < keys; j0 += 32) {
    const int j = j0 + lane;
    const float s = score(j), weight = expf(s - m);
    watch("S", watched, 0, j, s);
    watch("P", watched, 0, j, weight);
    l += weight;
    for (int n = 0; n < 32 && j0 + n < keys; ++n) {
      const float weight_n = __shfl_sync(0xffffffff, weight, n);
      for (int c = 0; c < D / 32; ++c) o_reg[c] += weight_n * to_float(v_head[int64_t(j0 + n) * D + lane + 32 * c]);
    }
  }
  watch_step("O / l");
  l = warp_sum(l);
  watch("m", watched, 0, 0, m);
  watch("l", watched, 0, 0, l);
  for (int c = 0; c < D / 32; ++c) o[row * D + lane + 32 * c] = from_float<T>(l == 0 ? 0 : o_reg[c] / l);
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    launch(attend<T, D>, {unsigned(ceil_div(int64_t(p.lse_size()), Br)), threads, 0, stream}, p, q, k, v, o);
  });
}

constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128, attention::no_workspace, run};

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "lanes",
    .idea = "a warp makes a row of O: a lane has a key of S, and columns of O",
    .rungs = {{.name = "lanes",
               .idea = "a warp makes a row of O: a lane has a key of S, and columns of O",
               .forward = attention::padded<unpadded>}}};

}  // namespace lanes
