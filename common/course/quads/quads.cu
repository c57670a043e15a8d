// The kernel of an exercise of chapter 05: four lanes share a row's keys.
//
//   attend   O and LSE of a query row     a quad of lanes per row, eight rows a warp, 32 a thread block
//
// Lane t of a quad takes keys t, t + 4, .. twice. First it finds its largest score, and the four agree on the largest
// of all. Then it calculates the scores again, and sums up l and O. At the end the four add up what they have.
//
// What is different from chapter 05's kernels: every score is calculated twice, so nothing has to be corrected, and
// there is no tile.
//
// Expected limit: the load unit. A key serves one row; 16-byte loads and tiles in shared memory would help.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace quads {

using attention::ForwardArgs;
using attention::Problem;

constexpr int Br = 32, threads = 4 * Br;  // query rows of a thread block, one to a quad

template <class T, int D>
__global__ void __launch_bounds__(threads) attend(Problem p,
                                                  const T* q,  // [B, H, Nq, D]
                                                  const T* k,  // [B, Hkv, Nk, D]
                                                  const T* v,  // [B, Hkv, Nk, D]
                                                  T* o,        // [B, H, Nq, D]
                                                  float* lse)  // [B, H, Nq]
{
  const int64_t row = int64_t(blockIdx.x) * Br + threadIdx.x / 4;  // over all batches and heads: (b * H + h) * Nq + i
  const bool exists = row < int64_t(p.batch) * p.heads * p.seq_q;  // the quads of a warp exchange numbers together
  const int head = exists ? int(row / p.seq_q) : 0, t = threadIdx.x % 4;
  const int keys = exists ? p.visible_keys(int(row % p.seq_q)) : 0;  // that the row sees: the first ones
  const T* q_row = q + row * D;
  const T* k_head = k + int64_t(p.kv_head(head)) * p.seq_k * D;
  const T* v_head = v + int64_t(p.kv_head(head)) * p.seq_k * D;

  const auto score = [&](int j) {
    float sum = 0;
    for (int d = 0; d < D; ++d) sum += to_float(q_row[d]) * to_float(k_head[int64_t(j) * D + d]);
    return p.scale * sum;
  };

  watch_step("1. S = Q K^T, and m = rowmax S");
  float m = -INFINITY;  // of this lane's keys
  for (int j = t; j < keys; j += 4) {
    const float s = score(j);
    watch("S", {row, 0, 1, p.seq_k}, 0, j, s);
    m = fmaxf(m, s);
  }
  const float largest = quad_max(m);

  watch_step("2. P = exp(S - m), and l; O += P V");
  float l = 0, o_reg[D] = {};  // of this lane's keys
  for (int j = t; j < keys; j += 4) {
    const float weight = expf(score(j) - largest);
    l += weight;
    for (int d = 0; d < D; ++d) o_reg[d] += weight * to_float(v_head[int64_t(j) * D + d]);
  }
  watch_step("O / l and LSE");
  l = quad_sum(l);
  for (int d = 0; d < D; ++d) {
    const float sum = quad_sum(o_reg[d]);
    if (exists && d % 4 == t) o[row * D + d] = from_float<T>(l == 0 ? 0 : sum / l);
  }
  if (exists && t == 0) lse[row] = largest + logf(l);
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    launch(attend<T, D>, {unsigned(ceil_div(int64_t(p.lse_size()), Br)), threads, 0, stream}, p, q, k, v, o, args.lse);
  });
}

constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128, attention::no_workspace, run, true};

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "quads",
    .idea = "four lanes share a row's keys: they agree on the largest score, and add up what they have",
    .rungs = {{.name = "quads",
               .idea = "four lanes share a row's keys: they agree on the largest score, and add up what they have",
               .forward = attention::padded<unpadded>}}};

}  // namespace quads
