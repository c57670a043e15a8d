// Chapter 10, rung 22, cyclic, backward: blocks of one head begin at different queries.
//
// No kernel of its own: that of shared, with another order of the queries (QueryOrder, in attention/schedule.h).
//
// What changed since shared: blocks of one head began with the same tile of queries, and added to its dQ one after the
// other. The block of the c-th keys was late by c turns, and at the end of the kernel the others had to wait for it.
// Without a mask block c of C now begins c / C of the way through the queries, and goes round. So no two are due at a
// tile at the same time, and they add in the order in which they are due, the same in every run. But each waits for
// blocks behind it too. So all of them have to run at the same time, and a cooperative launch sees to that. Where there
// are more blocks than multiprocessors, all is as before.
//
// Expected limit: as for shared; with few keys, no longer the turns.
#include "attention/padded.h"
#include "device/launch.h"

namespace hopper {

using attention::BackwardArgs;
using attention::Problem;

extern const attention::Backward wide_backward;  // for D = 192 and 256
void backward_shared(const Problem& p, const BackwardArgs& args, cudaStream_t stream, bool cyclic, Blocks after);
size_t workspace_of_shared(const Problem& p);

namespace {

constexpr attention::Backward unpadded = {attention::not_for_hopper_to_256, workspace_of_shared,
                                          [](const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
                                            backward_shared(p, args, stream, true, Blocks::apart);
                                          }};

}  // namespace

extern const attention::Backward cyclic_backward;
constinit const attention::Backward cyclic_backward =
    attention::padded<unpadded, attention::next_64_128_192_256, wide_backward>;

}  // namespace hopper
