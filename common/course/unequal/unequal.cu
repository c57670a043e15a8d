// The kernel of an exercise of chapter 12: packed sequences without a list of their tiles.
//
//   attend   O and LSE of a query row     a thread per row, 64 rows a thread block
//
// Every head has total / Br + B places for tiles, and a thread block for each. The first tile of sequence b has place
// begin / Br + b, where begin is the sequence's first row. Between it and the next sequence's first place there is room
// for all tiles of the sequence. A block looks for the sequence whose place it has; if no row of it is there, it ends.
//
// What is different from chapter 12's kernels: no list says which tile comes first, so the longest sequences do not.
// There are no tensor cores, and nothing comes through shared memory.
//
// Expected limit: the load unit. A number of K serves one row; tiles in shared memory would help.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace unequal {

using attention::ForwardArgs;
using attention::Problem;
using attention::Strides;

constexpr int Br = 64;  // query rows of a thread block, one to a thread

template <class T, int D>
__global__ void __launch_bounds__(Br) attend(Problem p,
                                             const int* begin_q,  // [B + 1], cu_seqlens; none if nothing is packed
                                             const int* begin_k,  // [B + 1]
                                             const T* q,          // [total_q, H, D], or [B, H, Nq, D]
                                             const T* k,          // [total_k, Hkv, D], or [B, Hkv, Nk, D]
                                             const T* v,          // likewise
                                             T* o,                // as Q
                                             float* lse,          // [H, total_q], or [B, H, Nq]
                                             Strides of_q, Strides of_kv, Strides of_lse) {
  const int head = blockIdx.x % p.heads, place = blockIdx.x / p.heads;
  int b = 0, i0 = place * Br, first_q = 0, first_k = 0;  // the sequence; in it the block's first row; where it begins
  if (p.packed) {
    watch_step("which sequence is this block's?");
    // exercise places: `b`, the sequence that has this `place`, and `i0`, which of its rows is the block's first
    b = -1;
    for (int c0 = 0; c0 < p.batch; c0 += Br) {  // each thread asks another sequence
      const int c = c0 + threadIdx.x;
      b += __syncthreads_count(c < p.batch && begin_q[c] / Br + c <= place);
    }
    i0 = (place - begin_q[b] / Br - b) * Br;
    // end places |
    first_q = begin_q[b], first_k = begin_k[b];
    p.seq_q = begin_q[b + 1] - first_q, p.seq_k = begin_k[b + 1] - first_k;
  } else {
    const int tiles = ceil_div(p.seq_q, Br);
    b = place / tiles, i0 = place % tiles * Br;
  }
  const int i = i0 + threadIdx.x;
  if (i >= p.seq_q) return;
  const auto at = [&](const Strides& of, int its_head, int64_t row) {
    return b * of.batch + its_head * of.head + row * of.row;
  };
  const int64_t row = at(of_q, head, first_q + i);
  Pack8<T> q_reg[D / 8];
  for (int c = 0; c < D / 8; ++c) q_reg[c] = load_pack8(q + row + c * 8);
  float m = -INFINITY, l = 0, o_reg[D] = {};
  watch_step("the keys that the row sees of its own sequence");
  for (int j = 0; j < p.visible_keys(i); ++j) {
    const int64_t kv_row = at(of_kv, p.kv_head(head), first_k + j);
    float s = 0;
    for (int c = 0; c < D / 8; ++c) {
      const Pack8<T> k_pack = load_pack8(k + kv_row + c * 8);
      for (int e = 0; e < 8; ++e) s += to_float(q_reg[c].x[e]) * to_float(k_pack.x[e]);
    }
    s *= p.scale;
    const float m_new = fmaxf(m, s), correction = m == -INFINITY ? 0 : expf(m - m_new);
    const float weight = expf(s - (m_new == -INFINITY ? 0 : m_new));  // -inf: there were only scores of -inf
    m = m_new, l = l * correction + weight;
    for (int c = 0; c < D / 8; ++c) {
      const Pack8<T> v_pack = load_pack8(v + kv_row + c * 8);
      for (int e = 0; e < 8; ++e) o_reg[8 * c + e] = o_reg[8 * c + e] * correction + weight * to_float(v_pack.x[e]);
    }
  }
  watch_step("O / l and LSE");
  for (int d = 0; d < D; ++d) o[row + d] = from_float<T>(l == 0 ? 0 : o_reg[d] / l);  // l = 0: it sees no key
  lse[at(of_lse, head, first_q + i)] = m + logf(l);
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const int places = p.packed ? p.total_q / Br + p.batch : p.batch * ceil_div(p.seq_q, Br);  // of a head
    const Strides of_lse = p.packed ? Strides{0, p.total_q, 1} : attention::contiguous(p.heads, p.seq_q, 1);
    launch(attend<T, D>, {unsigned(places) * p.heads, Br, 0, stream}, p, args.cu_seqlens_q, args.cu_seqlens_k, q, k, v,
           o, args.lse, attention::contiguous(p, p.heads, p.seq_q, D), attention::contiguous(p, p.kv_heads, p.seq_k, D),
           of_lse);
  });
}

constexpr attention::Forward unpadded = {.unsupported = attention::head_dim_not_8_to_128,
                                         .workspace_bytes = attention::no_workspace,
                                         .run = run,
                                         .writes_lse = true,
                                         .takes = attention::packed};

extern const attention::Chapter chapter;
const attention::Chapter chapter = {.name = "unequal",
                                    .idea = "a block finds out which packed sequence its rows are of",
                                    .rungs = {{.name = "unequal",
                                               .idea = "a block finds out which packed sequence its rows are of",
                                               .forward = attention::padded<unpadded>}}};

}  // namespace unequal
