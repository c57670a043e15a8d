// Chapter 11, rung 7, chosen: the kernel by the number of rows.
//
// No kernel of its own. The host launches
//
//   `tall`       up to 64 rows of queries a kv head: their products cost less than reading K and V
//   `packed`     for more: a tile has 128 rows, and all of them use each fragment of K and V in shared memory
//   `persistent` of chapter 10, where the rows alone are enough for every multiprocessor
//   `balanced`   of chapter 08 instead, on a GPU that does not have the instructions of Hopper
//
// What changed since 6_tall: more than 64 rows are no longer for its tiles.
//
// Expected limit: memory for few rows, and that of chapter 10 or 08 for many.
#include <string>

#include "attention/rung.h"

namespace causal_earlystop {
extern const attention::Rung balanced;
}

namespace hopper {
extern const attention::Rung persistent;
}

namespace split_kv {

extern const attention::Rung packed, tall;

namespace {

using attention::Forward;
using attention::ForwardArgs;
using attention::Problem;

const Forward& chosen_for(const Problem& p) {
  constexpr int tall_rows = 64, Br = 128, blocks = 2;  // 08's rows of a thread block, and its blocks per multiprocessor
  if (p.heads / p.kv_heads * p.seq_q <= tall_rows) return tall.forward;
  int device = 0, multiprocessors = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  const int64_t whole_blocks = int64_t(p.batch) * p.heads * ((p.seq_q + Br - 1) / Br);
  if (whole_blocks < blocks * multiprocessors) return packed.forward;
  const Forward& of_hopper = hopper::persistent.forward;
  return of_hopper.unsupported(p).empty() ? of_hopper : causal_earlystop::balanced.forward;
}

size_t workspace_bytes(const Problem& p) { return chosen_for(p).workspace_bytes(p); }

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) { chosen_for(p).run(p, args, stream); }

}  // namespace

extern const attention::Rung chosen;
constinit const attention::Rung chosen = {
    .name = "chosen",
    .idea = "the host chooses by the number of rows: `tall`, `packed`, or the kernel of chapter 10 or 08",
    .forward = {attention::head_dim_not_8_to_128, workspace_bytes, run, true}};

}  // namespace split_kv
