// Chapter 11, rung 9, chosen: the kernel by the number of rows.
//
// No kernel of its own. The host launches
//
//   `tall`       up to 16 rows of queries a kv head: a tile that is as low as an mma
//   `warpgroup`  up to 64: their products cost less than reading K and V
//   `even`       for more, where tiles of 192 rows would leave multiprocessors without work, and for long
//   `prompt`     of chapter 10 for all others
//
// and on a GPU that does not have the instructions of Hopper `tall` instead of `warpgroup`, `packed` instead of `even`,
// and `balanced` of chapter 08 instead of `prompt`.
//
// What changed since 8_even: it is for the problems between few rows and many, and other kernels are for the others.
//
// Expected limit: memory for few rows, and that of chapter 10 or 08 for many.
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

// The first of the two, unless it does not take the problem here.
const Forward& one_of(const Forward& first, const Forward& other, const Problem& p) {
  return first.unsupported(p).empty() ? first : other;
}

// Whether equal shares of all tiles of keys end before whole tiles of 192 rows, the last round of which is rarely full.
bool shares_end_first(const Problem& p) {
  if (p.mask == attention::Mask::causal && 2 * p.seq_q > p.seq_k)
    return false;                   // those tiles differ, the longest come first
  constexpr int Br = 192;           // rows of a tile, of either
  constexpr double more = 1 / 12.;  // for two kernels, and pieces that begin and end: of a tile with 8192 keys, D = 128
  const double processors = multiprocessors(), size = double(p.seq_k) * p.head_dim / (8192 * 128);
  const double shares = p.batch * p.kv_heads * double(key_parts::group_rows(p)) / Br / processors + more / size;
  const int64_t tiles = int64_t(p.batch) * p.heads * ceil_div(p.seq_q, Br);
  return shares < double((tiles + multiprocessors() - 1) / multiprocessors());
}

const Forward& chosen_for(const Problem& p) {
  constexpr int low_rows = 16, tall_rows = 256;
  const int rows = key_parts::group_rows(p);
  if (rows <= low_rows) return tall.forward;
  if (rows <= tall_rows && warpgroup.forward.unsupported(p).empty()) return warpgroup.forward;
  if (even.forward.unsupported(p).empty()) return shares_end_first(p) ? even.forward : hopper::prompt.forward;
  constexpr int Br = 128, blocks = 2;  // 08's rows of a thread block, and its blocks per multiprocessor
  const int64_t whole_blocks = int64_t(p.batch) * p.heads * ceil_div(p.seq_q, Br);
  if (rows <= 64) return tall.forward;
  return whole_blocks < blocks * multiprocessors() ? packed.forward : causal_earlystop::balanced.forward;
}

size_t workspace_bytes(const Problem& p) { return chosen_for(p).workspace_bytes(p); }

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) { chosen_for(p).run(p, args, stream); }

}  // namespace

extern const attention::Rung chosen;
constinit const attention::Rung chosen = {
    .name = "chosen",
    .idea = "the host chooses by the number of rows: `tall`, `warpgroup`, `even`, or the kernel of chapter 10",
    .forward = {attention::head_dim_not_8_to_128, workspace_bytes, run, true}};

}  // namespace split_kv
