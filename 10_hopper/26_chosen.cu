// Chapter 10, rung 26, chosen, forward and backward: the host chooses between two kernels of each.
//
// No kernel of its own. The host launches
//
//   forward:   `beside`   for head dims up to 64
//   backward:  `columns`  up to D = 128, where thread blocks come by many queries
//   both:      `prompt`   for all others
//
// What changed since prompt, forward: at D = 64 each tile has more exponentials for its products, and it pays to round
// P beside them; at D = 128 it does not. Backward: in `columns` dQ of a block's last tile is made with nothing beside
// it, which costs more than all else saves where a block has few tiles.
//
// Expected limit: that of the kernel that runs.
#include "attention/rung.h"

namespace hopper {

using attention::Backward;
using attention::BackwardArgs;
using attention::Forward;
using attention::ForwardArgs;
using attention::Problem;

extern const attention::Rung prompt, beside;
extern const Backward columns_backward;
bool columns_pay(const Problem& p);  // by how many queries a thread block comes by

namespace {

const Forward& chosen_for(const Problem& p) { return p.head_dim <= 64 ? beside.forward : prompt.forward; }

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
    .idea = "the host chooses: `beside` up to D = 64, `columns` with many queries, else `prompt`",
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
