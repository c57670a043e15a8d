// The kernel of two exercises of chapter 12: a row sees a window of keys, and its sum has a sink.
//
//   attend   O and LSE of a query row     a thread per row, 64 rows a thread block
//
// Keys and values come through shared memory in tiles of 32, as in chapter 05. A thread goes through a tile key by key
// and keeps m, l and O of its row in registers. It knows which keys its row sees, and passes by the others.
//
// What is different from chapter 12's kernels: there are no tensor cores, and a tile is masked key by key, whether or
// not an edge of the window crosses it.
//
// Expected limit: multiply-adds, and the registers of a thread: it has a whole row of Q and of O.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace band {

using attention::ForwardArgs;
using attention::Problem;

constexpr int Br = 64;  // query rows of a thread block, one to a thread
constexpr int Bc = 32;  // keys in a tile

template <class T, int D>
__global__ void __launch_bounds__(Br) attend(Problem p,
                                             const T* q,         // [B, H, Nq, D]
                                             const T* k,         // [B, Hkv, Nk, D]
                                             const T* v,         // [B, Hkv, Nk, D]
                                             T* o,               // [B, H, Nq, D]
                                             float* lse,         // [B, H, Nq]
                                             const float* sink)  // [H], or none
{
  Pack8<T>* k_smem = dynamic_shared<Pack8<T>>();                               // [Bc][D / 8]
  Pack8<T>* v_smem = k_smem + Bc * D / 8;                                      // [Bc][D / 8]
  const int row_tiles = ceil_div(p.seq_q, Br), head = blockIdx.x / row_tiles;  // over all batches
  const int i0 = blockIdx.x % row_tiles * Br, i = i0 + threadIdx.x;
  const bool exists = i < p.seq_q;
  const Problem::Span keys = exists ? p.keys_of(i) : Problem::Span{0, 0};  // that this row sees
  const int64_t row = int64_t(head) * p.seq_q + i, kv_row = int64_t(p.kv_head(head)) * p.seq_k;
  const Watched watched = {row, 0, exists, p.seq_k};

  Pack8<T> q_reg[D / 8] = {};
  for (int c = 0; c < D / 8 && exists; ++c) q_reg[c] = load_pack8(q + row * D + c * 8);
  float m = -INFINITY, l = 0, o_reg[D] = {};

  // exercise window: `begin`, where the first tile starts, and `end`, past the last key that a row of this block sees
  const int last = min(i0 + Br, p.seq_q) - 1;  // the last of the block's rows that exists
  const int begin = p.keys_of(i0).first / Bc * Bc, end = p.keys_of(last).end;
  // end window | const int begin = 0, end = p.seq_k;

  for (int j0 = begin; j0 < end; j0 += Bc) {
    __syncthreads();  // everyone is done with the tile before
    for (int n = threadIdx.x; n < Bc * D / 8; n += Br) {
      const int j = j0 + n / (D / 8);
      const int64_t from = (kv_row + j0) * D + n * 8;
      k_smem[n] = j < p.seq_k ? load_pack8(k + from) : Pack8<T>{};
      v_smem[n] = j < p.seq_k ? load_pack8(v + from) : Pack8<T>{};
    }
    __syncthreads();  // the tile is in shared memory

    watch_step("S, m, l and P of a tile; O += P V");
    for (int j = 0; j < Bc; ++j) {
      if (j0 + j < keys.first || j0 + j >= keys.end) continue;
      float s = 0;
      for (int c = 0; c < D / 8; ++c)
        for (int e = 0; e < 8; ++e) s += to_float(q_reg[c].x[e]) * to_float(k_smem[j * D / 8 + c].x[e]);
      s *= p.scale;
      watch("S", watched, 0, j0 + j, s);
      if (s > m) {  // what there is becomes smaller; before the first key, 0
        const float correction = expf(m - s);
        l *= correction;
        for (float& x : o_reg) x *= correction;
        m = s;
      }
      const float weight = expf(s - (m == -INFINITY ? 0 : m));  // -inf: there were only scores of -inf
      l += weight;
      for (int c = 0; c < D / 8; ++c)
        for (int e = 0; e < 8; ++e) o_reg[8 * c + e] += weight * to_float(v_smem[j * D / 8 + c].x[e]);
    }
  }

  watch_step("O / l and LSE");
  // exercise sink: with a sink, the row's sum has one more term, exp of this head's number; adapt m, l and O
  if (sink) {
    const float s = sink[head % p.heads], largest = fmaxf(m, s);
    const float share = expf(m - largest);  // 0 if the row has seen no key
    l = l * share + expf(s - largest);
    for (float& x : o_reg) x *= share;
    m = largest;
  }
  // end sink |
  if (!exists) return;
  watch("m", watched, 0, 0, m);
  watch("l", watched, 0, 0, l);
  for (int d = 0; d < D; ++d) o[row * D + d] = from_float<T>(l == 0 ? 0 : o_reg[d] / l);  // l = 0: no key, no sink
  lse[row] = m + logf(l);
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const unsigned blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, Br);
    launch(attend<T, D>, {blocks, Br, 2 * Bc * D * sizeof(T), stream}, p, q, k, v, o, args.lse, args.sink);
  });
}

constexpr attention::Forward unpadded = {.unsupported = attention::head_dim_not_8_to_128,
                                         .workspace_bytes = attention::no_workspace,
                                         .run = run,
                                         .writes_lse = true,
                                         .takes = attention::window | attention::sink};

extern const attention::Chapter chapter;
const attention::Chapter chapter = {.name = "band",
                                    .idea = "a thread goes through the keys of its row's window, and adds a sink",
                                    .rungs = {{.name = "band",
                                               .idea = "a thread goes through the keys of its row's window, and adds a "
                                                       "sink",
                                               .forward = attention::padded<unpadded>}}};

}  // namespace band
