// The kernel of an exercise of chapter 01: a thread makes a whole row of O.
//
//   attend   m, then P and O of a query row     a thread per row, 128 rows a thread block
//
// S is never stored. A thread walks over its keys twice and makes every score twice: first for m, the largest of them,
// then for P = exp(S - m), by which it adds up l and its row of O.
//
// What is different from chapter 01's kernels: one launch, and no matrix in global memory. There are D times fewer
// threads, and each has D times as much to do.
//
// Expected limit: the load unit, as in chapter 01. The 32 threads of a warp read 32 rows of Q, but one row of K and V.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace rows {

using attention::ForwardArgs;
using attention::Problem;

constexpr int threads = 128;  // of a thread block, a row each: four warps, one per scheduler

template <class T, int D>
__global__ void __launch_bounds__(threads) attend(Problem p,
                                                  const T* q,  // [B, H, Nq, D]
                                                  const T* k,  // [B, Hkv, Nk, D]
                                                  const T* v,  // [B, Hkv, Nk, D]
                                                  T* o)        // [B, H, Nq, D]
{
  const int64_t row = int64_t(blockIdx.x) * threads + threadIdx.x;  // over all batches and heads: (b * H + h) * Nq + i
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  const int head = int(row / p.seq_q), i = int(row % p.seq_q);
  const int keys = p.visible_keys(i);  // that the row sees: the first ones
  const T* q_row = q + row * D;
  const T* k_head = k + int64_t(p.kv_head(head)) * p.seq_k * D;
  const T* v_head = v + int64_t(p.kv_head(head)) * p.seq_k * D;
  const Watched watched = {row, 0, 1, p.seq_k};

  const auto score = [&](int j) {
    float sum = 0;
    for (int d = 0; d < D; ++d) sum += to_float(q_row[d]) * to_float(k_head[int64_t(j) * D + d]);
    return p.scale * sum;
  };

  watch_step("1. S = Q K^T, and m = rowmax S");
  float m = -INFINITY;  // subtracted from every score, so that exp cannot overflow
  for (int j = 0; j < keys; ++j) m = fmaxf(m, score(j));
  if (m == -INFINITY) m = 0;  // the row sees no key, or none that counts: keeps -inf - -inf = NaN out of exp
  watch_step("2. P = exp(S - m), and l; O += P V");
  float l = 0, o_row[D] = {};
  for (int j = 0; j < keys; ++j) {
    const float s = score(j), weight = expf(s - m);
    watch("S", watched, 0, j, s);
    watch("P", watched, 0, j, weight);
    l += weight;
    for (int d = 0; d < D; ++d) o_row[d] += weight * to_float(v_head[int64_t(j) * D + d]);
  }
  watch("m", watched, 0, 0, m);
  watch("l", watched, 0, 0, l);
  watch_step("O / l");
  for (int d = 0; d < D; ++d) o[row * D + d] = from_float<T>(l == 0 ? 0 : o_row[d] / l);  // l = 0: no key counts
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    launch(attend<T, D>, {unsigned(ceil_div(int64_t(p.lse_size()), threads)), threads, 0, stream}, p, q, k, v, o);
  });
}

constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128, attention::no_workspace, run};

extern const attention::Chapter chapter;
const attention::Chapter chapter = {.name = "rows",
                                    .idea = "a thread makes a whole row of O, and every score twice",
                                    .rungs = {{.name = "rows",
                                               .idea = "a thread makes a whole row of O, and every score twice",
                                               .forward = attention::padded<unpadded>}}};

}  // namespace rows
