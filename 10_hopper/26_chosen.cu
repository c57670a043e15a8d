// Chapter 10, rung 26, chosen, forward: the host chooses between two kernels.
//
// No kernel of its own. The host launches
//
//   `polynomial`  for head dims up to 64 and many keys, if tiles of 192 rows, for three consumers, should be done first
//   `prompt`      for all others
//
// What changed since polynomial: where tiles are few, the number of consumers counts for more than an eighth of the
// exponentials, and other problems get the kernels of `prompt` as before.
//
// Expected limit: that of the kernel that runs.
#include "attention/rung.h"

namespace hopper {

using attention::Forward;
using attention::ForwardArgs;
using attention::Problem;

extern const attention::Rung prompt, polynomial;
int consumers_for(const Problem& p);

namespace {

const Forward& chosen_for(const Problem& p) {
  const int many_keys = p.mask == attention::Mask::causal ? 4096 : 512;  // under the mask it loses with fewer
  const bool is_for_polynomial = p.head_dim <= 64 && p.seq_k >= many_keys && consumers_for(p) == 3;
  return is_for_polynomial ? polynomial.forward : prompt.forward;
}

size_t workspace_bytes(const Problem& p) { return chosen_for(p).workspace_bytes(p); }

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) { chosen_for(p).run(p, args, stream); }

}  // namespace

extern const attention::Rung chosen;
constinit const attention::Rung chosen = {
    .name = "chosen",
    .idea = "the host chooses: `polynomial` at D = 64 with many keys and tiles, else `prompt`",
    .forward = {.unsupported = attention::not_for_hopper_to_256,
                .workspace_bytes = workspace_bytes,
                .run = run,
                .writes_lse = true,
                .chooses = chosen_for}};

}  // namespace hopper
