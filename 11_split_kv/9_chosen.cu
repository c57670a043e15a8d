// Chapter 11, rung 9, chosen: the kernel by the number of rows.
//
// No kernel of its own. The host launches
//
//   `tall`       up to 16 rows of queries a kv head: a tile that is as low as an mma
//   `warpgroup`  for more, while their products cost less than reading K and V
//   `even`       for still more, where whole tiles of 192 rows would leave multiprocessors without work
//   `prompt`     of chapter 10 for all others
//
// and on a GPU that does not have the instructions of Hopper `tall` instead of `warpgroup`, `packed` instead of `even`,
// and `balanced` of chapter 08 instead of `prompt`.
//
// What changed since 8_even: it is for the problems between few rows and many, and other kernels are for the others.
//
// Expected limit: memory for few rows, and that of chapter 10 or 08 for many.
#include <algorithm>
#include <cmath>
#include <string>

#include "attention/key_parts.h"
#include "attention/rung.h"
#include "device/limits.h"

namespace causal_earlystop {
extern const attention::Rung balanced;
}

namespace hopper {
extern const attention::Rung prompt;
}

namespace split_kv {

extern const attention::Rung packed, tall, warpgroup, even;

namespace {

using attention::Forward;
using attention::ForwardArgs;
using attention::Problem;

// About how long each takes for more than 16 rows a kv head, in the time of a tile of 192 rows and all keys on one
// multiprocessor, as measured on an H200. What the two kernels of `warpgroup` and `even` take besides is as long as so
// many keys at D = 128; with few tiles, each of `even` is in many pieces.
struct Times {
  double warpgroup, even, prompt;
};

Times times_of(const Problem& p) {
  constexpr int wide = 192, low = 64;  // rows of a tile
  const double processors = multiprocessors(), kv_heads = double(p.batch) * p.kv_heads,
               heads = double(p.batch) * p.heads;
  const double keys = p.seq_k * (p.head_dim > 64 ? 1 : 0.7);
  const auto tiles = [](double heads, int rows, int height) { return heads * ceil_div(rows, height); };
  const int rows = key_parts::group_rows(p);
  Times times = {
      .warpgroup = (p.head_dim > 64 ? 1.85 : 1.4) * tiles(kv_heads, rows, low) * low / wide / processors + 450 / keys,
      .even = tiles(kv_heads, rows, wide) / processors + (500 + 20000 / tiles(kv_heads, rows, wide)) / keys,
      .prompt = std::ceil(tiles(heads, p.seq_q, wide) / processors)};
  times.prompt = std::min({times.prompt, std::ceil(tiles(heads, p.seq_q, 128) / processors) * 0.75,
                           std::ceil(tiles(heads, p.seq_q, low) / processors) * 0.57});  // its tiles may be lower
  return times;
}

const Forward& chosen_for(const Problem& p) {
  constexpr int low_rows = 16, tall_rows = 64;
  const int rows = key_parts::group_rows(p);
  if (rows <= low_rows) return tall.forward;
  if (even.forward.unsupported(p).empty()) {
    // With half as many queries as keys, or more, under the causal mask tiles differ: `prompt` takes the longest first.
    if (p.mask == attention::Mask::causal && 2 * p.seq_q >= p.seq_k) return hopper::prompt.forward;
    const Times times = times_of(p);
    const double split = std::min(times.warpgroup, times.even);
    if (times.prompt * 0.95 < split) return hopper::prompt.forward;
    return times.warpgroup < times.even ? warpgroup.forward : even.forward;
  }
  constexpr int Br = 128, blocks = 2;  // 08's rows of a thread block, and its blocks per multiprocessor
  if (rows <= tall_rows) return tall.forward;
  const int64_t whole_blocks = int64_t(p.batch) * p.heads * ceil_div(p.seq_q, Br);
  return whole_blocks < blocks * multiprocessors() ? packed.forward : causal_earlystop::balanced.forward;
}

size_t workspace_bytes(const Problem& p) { return chosen_for(p).workspace_bytes(p); }

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) { chosen_for(p).run(p, args, stream); }

}  // namespace

extern const attention::Rung chosen;
constinit const attention::Rung chosen = {
    .name = "chosen",
    .idea = "the host chooses by the number of rows: `tall`, `warpgroup`, `even`, or the kernel of chapter 10",
    .forward = {.unsupported = attention::head_dim_not_8_to_128,
                .workspace_bytes = workspace_bytes,
                .run = run,
                .writes_lse = true,
                .chooses = chosen_for}};

}  // namespace split_kv
