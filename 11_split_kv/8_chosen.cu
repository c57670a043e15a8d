// Chapter 11, rung 8, chosen: the kernel by the number of rows.
//
// No kernel of its own. The host launches
//
//   `tall`       up to 16 rows of queries a kv head: a tile that is as low as an mma
//   `warpgroup`  up to 64: their products cost less than reading K and V
//   `packed`     for more: a tile has 128 rows, and all of them use each fragment of K and V in shared memory
//   `narrow`     of chapter 10, where the rows alone are enough for every multiprocessor
//
// and on a GPU that does not have the instructions of Hopper `tall` instead of `warpgroup`, and `balanced` of chapter
// 08 instead of `narrow`.
//
// What changed since 7_warpgroup: it is for 17 to 64 rows, and other kernels are for fewer and for more.
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
extern const attention::Rung narrow;
}

namespace split_kv {

extern const attention::Rung packed, tall, warpgroup;

namespace {

using attention::Forward;
using attention::ForwardArgs;
using attention::Problem;

// The first of the two, unless it does not take the problem here.
const Forward& one_of(const Forward& first, const Forward& other, const Problem& p) {
  return first.unsupported(p).empty() ? first : other;
}

const Forward& chosen_for(const Problem& p) {
  constexpr int low_rows = 16, tall_rows = 64;
  constexpr int Br = 128, blocks = 2;  // 08's rows of a thread block, and its blocks per multiprocessor
  const int rows = key_parts::group_rows(p);
  if (rows <= low_rows) return tall.forward;
  if (rows <= tall_rows) return one_of(warpgroup.forward, tall.forward, p);
  const int64_t whole_blocks = int64_t(p.batch) * p.heads * ceil_div(p.seq_q, Br);
  if (whole_blocks < blocks * multiprocessors()) return packed.forward;
  return one_of(hopper::narrow.forward, causal_earlystop::balanced.forward, p);
}

size_t workspace_bytes(const Problem& p) { return chosen_for(p).workspace_bytes(p); }

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) { chosen_for(p).run(p, args, stream); }

}  // namespace

extern const attention::Rung chosen;
constinit const attention::Rung chosen = {
    .name = "chosen",
    .idea = "the host chooses by the number of rows: `tall`, `warpgroup`, `packed`, or the kernel of chapter 10 or 08",
    .forward = {attention::head_dim_not_8_to_128, workspace_bytes, run, true}};

}  // namespace split_kv
