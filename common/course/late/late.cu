// The kernel of an exercise of chapter 12: a window in which some rows begin late.
//
//   attend   O and LSE of a query row     a thread per row, 64 rows a thread block
//
// All rows of a block go through the same tiles of 32 keys: from the first that one of them sees to the last. m, l and
// O are corrected once a tile, as in chapter 05. In the first tile, the block's last rows need not see a key.
//
// What is different from chapter 12's kernels: there are no tensor cores, and nothing comes through shared memory.
//
// Expected limit: the load unit. A number of K serves one row; tiles in shared memory would help.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace late {

using attention::ForwardArgs;
using attention::Problem;

constexpr int Br = 64;  // query rows of a thread block, one to a thread
constexpr int Bc = 32;  // keys in a tile

template <class T, int D>
__global__ void __launch_bounds__(Br) attend(Problem p,
                                             const T* q,  // [B, H, Nq, D]
                                             const T* k,  // [B, Hkv, Nk, D]
                                             const T* v,  // [B, Hkv, Nk, D]
                                             T* o,        // [B, H, Nq, D]
                                             float* lse)  // [B, H, Nq]
{
  const int row_tiles = ceil_div(p.seq_q, Br), head = blockIdx.x / row_tiles;  // over all batches
  const int i0 = blockIdx.x % row_tiles * Br, i = i0 + threadIdx.x;
  if (i >= p.seq_q) return;
  const int begin = p.keys_of(i0).first, end = p.keys_of(min(i0 + Br, p.seq_q) - 1).end;  // of the block
  const Problem::Span keys = p.keys_of(i);                                                // of this row
  const int64_t row = int64_t(head) * p.seq_q + i;
  const T* q_row = q + row * D;
  const T* k_head = k + int64_t(p.kv_head(head)) * p.seq_k * D;
  const T* v_head = v + int64_t(p.kv_head(head)) * p.seq_k * D;
  const Watched watched = {row, 0, 1, p.seq_k};

  float m = -INFINITY, l = 0, o_row[D] = {};
  for (int j0 = begin; j0 < end; j0 += Bc) {
    watch_step("1. S = Q K^T of a tile; hidden keys have -inf");
    float s[Bc], m_new = m;
    for (int n = 0; n < Bc; ++n) {
      const int j = j0 + n;
      s[n] = -INFINITY;
      if (j < keys.first || j >= keys.end) continue;
      float sum = 0;
      for (int d = 0; d < D; ++d) sum += to_float(q_row[d]) * to_float(k_head[int64_t(j) * D + d]);
      s[n] = p.scale * sum;
      watch("S", watched, 0, j, s[n]);
      m_new = fmaxf(m_new, s[n]);
    }
    watch_step("2. m, l and P; O = correction O + P V");
    const float base = m_new == -INFINITY ? 0 : m_new;  // no key seen yet: keeps -inf - -inf = NaN out of exp
    const float correction = expf(m - base);
    m = m_new;
    l *= correction;
    for (float& x : o_row) x *= correction;
    for (int n = 0; n < Bc && j0 + n < end; ++n) {
      const float weight = expf(s[n] - base);
      l += weight;
      for (int d = 0; d < D; ++d) o_row[d] += weight * to_float(v_head[int64_t(j0 + n) * D + d]);
    }
  }
  watch_step("O / l and LSE");
  for (int d = 0; d < D; ++d) o[row * D + d] = from_float<T>(l == 0 ? 0 : o_row[d] / l);  // l = 0: it sees no key
  lse[row] = m + logf(l);
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const unsigned blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, Br);
    launch(attend<T, D>, {blocks, Br, 0, stream}, p, q, k, v, o, args.lse);
  });
}

constexpr attention::Forward unpadded = {.unsupported = attention::head_dim_not_8_to_128,
                                         .workspace_bytes = attention::no_workspace,
                                         .run = run,
                                         .writes_lse = true,
                                         .takes = attention::window};

extern const attention::Chapter chapter;
const attention::Chapter chapter = {.name = "late",
                                    .idea = "the rows of a block go through the same tiles, and some begin late",
                                    .rungs = {{.name = "late",
                                               .idea = "the rows of a block go through the same tiles, and some begin "
                                                       "late",
                                               .forward = attention::padded<unpadded>}}};

}  // namespace late
