// The kernels of an exercise of chapter 12: a backward through a softcap.
//
//   of_queries   delta and dQ of a query row     a thread per row, 64 rows a thread block
//   of_keys      dK and dV of a key              a thread per key of a kv head, 64 keys a thread block
//
// Both go through all pairs of a query and a key that see one another, make S and dP of a pair anew, and ask of_pair()
// for P and dS. Nothing is added by two threads, so nobody waits for anybody.
//
// What is different from chapter 12's kernels: there are no tiles and no tensor cores, and every pair is made twice.
//
// Expected limit: the load unit. A number of K serves one row; tiles in shared memory would help.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace bent {

using attention::BackwardArgs;
using attention::Problem;

constexpr int threads = 64;  // of a thread block

struct Pair {
  float p, ds;
};

// P and dS of a query and a key, in natural units: s is scale * q k, LSE and delta are the query's.
__device__ inline Pair of_pair(const Problem& p, float s, float dp, float lse, float delta) {
  // exercise slope: P, and dS, the gradient by s; with a softcap (p.softcap > 0) the softmax gets the bent score
  const float tanh = p.softcap > 0 ? tanhf(s / p.softcap) : 0;
  const float bent = p.softcap > 0 ? p.softcap * tanh : s;
  const float weight = expf(bent - lse);
  const float ds = weight * (dp - delta) * (1 - tanh * tanh);
  // end slope | const float weight = expf(s - lse), ds = weight * (dp - delta);
  return {weight, ds};
}

template <class T, int D>
__device__ float product(const T* x, const T* y) {
  float sum = 0;
  for (int d = 0; d < D; ++d) sum += to_float(x[d]) * to_float(y[d]);
  return sum;
}

template <class T, int D>
__global__ void __launch_bounds__(threads) of_queries(Problem p,
                                                      const T* q,        // [B, H, Nq, D]
                                                      const T* k,        // [B, Hkv, Nk, D]
                                                      const T* v,        // [B, Hkv, Nk, D]
                                                      const T* o,        // [B, H, Nq, D]
                                                      const float* lse,  // [B, H, Nq]
                                                      const T* d_o,      // [B, H, Nq, D]
                                                      float* deltas,     // [B, H, Nq]
                                                      T* dq)             // [B, H, Nq, D]
{
  const int64_t row = int64_t(blockIdx.x) * threads + threadIdx.x;  // over all batches and heads: (b * H + h) * Nq + i
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  const int64_t kv_row = int64_t(p.kv_head(int(row / p.seq_q))) * p.seq_k;
  watch_step("delta, and dQ = dS K");
  const float delta = product<T, D>(d_o + row * D, o + row * D);
  deltas[row] = delta;
  float sum[D] = {};
  for (int j = 0; j < p.visible_keys(int(row % p.seq_q)); ++j) {
    const T* k_row = k + (kv_row + j) * D;
    const float s = p.scale * product<T, D>(q + row * D, k_row);
    const Pair pair = of_pair(p, s, product<T, D>(d_o + row * D, v + (kv_row + j) * D), lse[row], delta);
    for (int d = 0; d < D; ++d) sum[d] += pair.ds * to_float(k_row[d]);
  }
  for (int d = 0; d < D; ++d) dq[row * D + d] = from_float<T>(p.scale * sum[d]);
}

template <class T, int D>
__global__ void __launch_bounds__(threads) of_keys(Problem p,
                                                   const T* q,           // [B, H, Nq, D]
                                                   const T* k,           // [B, Hkv, Nk, D]
                                                   const T* v,           // [B, Hkv, Nk, D]
                                                   const float* lse,     // [B, H, Nq]
                                                   const T* d_o,         // [B, H, Nq, D]
                                                   const float* deltas,  // [B, H, Nq]
                                                   T* dk,                // [B, Hkv, Nk, D]
                                                   T* dv)                // [B, Hkv, Nk, D]
{
  const int64_t kv_row = int64_t(blockIdx.x) * threads + threadIdx.x;  // over all batches and kv heads
  if (kv_row >= int64_t(p.batch) * p.kv_heads * p.seq_k) return;
  const int j = int(kv_row % p.seq_k), group = p.heads / p.kv_heads;
  watch_step("dV = P^T dO, dK = dS^T Q");
  float dk_sum[D] = {}, dv_sum[D] = {};
  for (int64_t head = kv_row / p.seq_k * group, first = head; head < first + group; ++head)
    for (int i = p.first_query(j); i < p.seq_q; ++i) {
      const int64_t row = head * p.seq_q + i;
      const T *q_row = q + row * D, *d_o_row = d_o + row * D;
      const float s = p.scale * product<T, D>(q_row, k + kv_row * D);
      const Pair pair = of_pair(p, s, product<T, D>(d_o_row, v + kv_row * D), lse[row], deltas[row]);
      for (int d = 0; d < D; ++d) {
        dk_sum[d] += pair.ds * to_float(q_row[d]);
        dv_sum[d] += pair.p * to_float(d_o_row[d]);
      }
    }
  for (int d = 0; d < D; ++d) {
    dk[kv_row * D + d] = from_float<T>(p.scale * dk_sum[d]);
    dv[kv_row * D + d] = from_float<T>(dv_sum[d]);
  }
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
    float* deltas = static_cast<float*>(args.workspace);
    const auto blocks = [](size_t rows) { return unsigned(ceil_div(int64_t(rows), threads)); };
    launch(of_queries<T, D>, {blocks(p.lse_size()), threads, 0, stream}, p, q, k, v, o, args.lse, d_o, deltas, dq);
    launch(of_keys<T, D>, {blocks(p.kv_size() / D), threads, 0, stream}, p, q, k, v, args.lse, d_o, deltas, dk, dv);
  });
}

size_t workspace_bytes(const Problem& p) { return p.lse_size() * sizeof(float); }

constexpr attention::Backward unpadded = {.unsupported = attention::head_dim_not_8_to_128,
                                          .workspace_bytes = workspace_bytes,
                                          .run = run,
                                          .takes = attention::softcap};

extern const attention::Chapter chapter;
const attention::Chapter chapter = {.name = "bent",
                                    .idea = "gradients go through a softcap, pair by pair",
                                    .rungs = {{.name = "bent",
                                               .idea = "gradients go through a softcap, pair by pair",
                                               .backward = attention::padded<unpadded>}}};

}  // namespace bent
