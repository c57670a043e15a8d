// Chapter 10, rung 26, chosen, forward and backward: the host chooses between two kernels of each.
//
// No kernel of its own. The host launches
//
//   forward:   `polynomial`  for head dims up to 64 and many keys, if tiles of 192 rows, for three consumers, should be
//                            done first
//   backward:  `columns`     where thread blocks come by many queries
//   both:      `prompt`      for all others
//
// What changed since polynomial, forward: where tiles are few, the number of consumers counts for more than an eighth
// of the exponentials, and other problems get the kernels of `prompt` as before. Backward: in `columns` dQ of a block's
// last tile is made with nothing beside it, which costs more than all else saves where a block has few tiles.
//
// Expected limit: that of the kernel that runs.
#include "attention/rung.h"

namespace hopper {

using attention::Backward;
using attention::BackwardArgs;
using attention::Forward;
using attention::ForwardArgs;
using attention::Problem;

extern const attention::Rung prompt, polynomial;
extern const Backward columns_backward;
int consumers_for(const Problem& p);
bool columns_pay(const Problem& p);  // by how many queries a thread block comes by

namespace {

const Forward& chosen_for(const Problem& p) {
  const int many_keys = p.mask == attention::Mask::causal ? 4096 : 512;  // under the mask it loses with fewer
  const bool is_for_polynomial = p.head_dim <= 64 && p.seq_k >= many_keys && consumers_for(p) == 3;
  return is_for_polynomial ? polynomial.forward : prompt.forward;
}

const Backward& backward_chosen_for(const Problem& p) {
  return p.head_dim <= 128 && columns_pay(p) ? columns_backward : prompt.backward;
}

size_t workspace_bytes(const Problem& p) { return chosen_for(p).workspace_bytes(p); }
size_t workspace_bytes_backward(const Problem& p) { return backward_chosen_for(p).workspace_bytes(p); }

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) { chosen_for(p).run(p, args, stream); }
void run_backward(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  backward_chosen_for(p).run(p, args, stream);
}

}  // namespace

extern const attention::Rung chosen;
constinit const attention::Rung chosen = {
    .name = "chosen",
    .idea =
        "the host chooses: `polynomial` at D = 64 with many keys and tiles, `columns` with many queries, else `prompt`",
    .forward = {.unsupported = attention::not_for_hopper_to_256,
                .workspace_bytes = workspace_bytes,
                .run = run,
                .writes_lse = true,
                .chooses = chosen_for},
    .backward = {.unsupported = attention::not_for_hopper_to_256,
                 .workspace_bytes = workspace_bytes_backward,
                 .run = run_backward,
                 .chooses = backward_chosen_for}};

}  // namespace hopper
