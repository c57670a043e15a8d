// The kernel of an exercise of chapter 12: attention by the lists of a block mask.
//
//   attend   O and LSE of a query row     a thread per row, 64 rows a thread block
//
// A row reads the list of its row of tiles, of 128 queries and 128 keys: which tiles have a pair that is seen, and of
// each whether all pairs are. m, l and O are corrected with each key, as chapter 05 does with each tile.
//
// What is different from chapter 12's kernels: there are no tensor cores, nothing comes through shared memory, and
// nobody looks at the lists before, to see whether they are right.
//
// Expected limit: the load unit. A number of K serves one row; tiles in shared memory would help.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace listed {

using attention::BlockMask;
using attention::ForwardArgs;
using attention::Problem;

constexpr int Br = 64;  // query rows of a thread block, one to a thread
constexpr int tile = BlockMask::tile,
              words = BlockMask::words;  // 128 queries, or keys; a key's bit is in one of 4 words

template <class T, int D>
__global__ void __launch_bounds__(Br) attend(Problem p, BlockMask mask,
                                             const T* q,  // [B, H, Nq, D]
                                             const T* k,  // [B, Hkv, Nk, D]
                                             const T* v,  // [B, Hkv, Nk, D]
                                             T* o,        // [B, H, Nq, D]
                                             float* lse)  // [B, H, Nq]
{
  const int row_tiles = ceil_div(p.seq_q, Br), head = blockIdx.x / row_tiles;  // over all batches
  const int i = blockIdx.x % row_tiles * Br + threadIdx.x;
  if (i >= p.seq_q) return;
  const int seen = p.visible_keys(i);  // of a causal mask beside it
  const int64_t row = int64_t(head) * p.seq_q + i;
  const T* q_row = q + row * D;
  const T* k_head = k + int64_t(p.kv_head(head)) * p.seq_k * D;
  const T* v_head = v + int64_t(p.kv_head(head)) * p.seq_k * D;

  float m = -INFINITY, l = 0, o_row[D] = {};
  const auto take = [&](int j) {  // a key that the row sees
    float s = 0;
    for (int d = 0; d < D; ++d) s += to_float(q_row[d]) * to_float(k_head[int64_t(j) * D + d]);
    s *= p.scale;
    if (s == -INFINITY) return;  // its weight is 0
    const float m_new = fmaxf(m, s), correction = m == -INFINITY ? 0 : expf(m - m_new), weight = expf(s - m_new);
    m = m_new, l = l * correction + weight;
    for (int d = 0; d < D; ++d) o_row[d] = o_row[d] * correction + weight * to_float(v_head[int64_t(j) * D + d]);
  };
  if (p.blocks == attention::BlockPattern::none) {
    for (int j = 0; j < seen; ++j) take(j);
  } else {
    // Where the lists of this head's mask begin in mask.tiles: of each row of tiles, and the end of the last
    const int b = mask.batch > 1 ? head / p.heads : 0, h = mask.heads > 1 ? head % p.heads : 0;
    const int* begin = mask.begin + (b * mask.heads + h) * (ceil_div(p.seq_q, tile) + 1 + ceil_div(p.seq_k, tile) + 1);
    watch_step("the keys of the row's list");
    // exercise listed: take(j) every key j < seen that query i sees, by its list and, of a cut tile, by its bit
    for (int t = begin[i / tile]; t < begin[i / tile + 1]; ++t) {
      const int j0 = mask.tiles[2 * t] * tile, cut = mask.tiles[2 * t + 1];  // the first key; whose bits, or -1
      const uint32_t* bits = cut < 0 ? nullptr : mask.bits + (int64_t(cut) * tile + i % tile) * words;
      for (int j = j0; j < min(j0 + tile, seen); ++j)
        if (!bits || bits[(j - j0) / 32] >> (j - j0) % 32 & 1) take(j);
    }
    // end listed | for (int j = 0; j < seen; ++j) take(j);
  }
  watch_step("O / l and LSE");
  for (int d = 0; d < D; ++d) o[row * D + d] = from_float<T>(l == 0 ? 0 : o_row[d] / l);  // l = 0: it sees no key
  lse[row] = m + logf(l);
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const unsigned blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, Br);
    launch(attend<T, D>, {blocks, Br, 0, stream}, p, args.blocks, q, k, v, o, args.lse);
  });
}

constexpr attention::Forward unpadded = {.unsupported = attention::head_dim_not_8_to_128,
                                         .workspace_bytes = attention::no_workspace,
                                         .run = run,
                                         .writes_lse = true,
                                         .takes = attention::blocks};

extern const attention::Chapter chapter;
const attention::Chapter chapter = {.name = "listed",
                                    .idea = "a row takes the keys of the tiles in its list",
                                    .rungs = {{.name = "listed",
                                               .idea = "a row takes the keys of the tiles in its list",
                                               .forward = attention::padded<unpadded>}}};

}  // namespace listed
