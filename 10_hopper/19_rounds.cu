// Chapter 10, rung 19, rounds: as many heads at a time as the L2 cache has room for.
//
// No kernel of its own: the forward is ahead's and the backward is fetched's, with other numbers of heads in a round. A
// round is the heads whose tiles follow one another in the order of the work (attention/schedule.h): the tiles of one
// head read the same K and V, and should find them in the L2 cache.
//
// Forward: as many heads as have room in 16 MB with K and V, but not more than 16, or 32 at D = 64 and 4 above D =
// 128, unless more have room in 8 MB. Each round begins with its longest tiles, and of a last round with few heads
// those would run alone: of the numbers near that, a round has the one with which the last round is fullest. All heads
// are one round if they have room in 16 MB, or in 32 under the mask. Before, it was as many as have room in 32 MB, and
// 32 at least. By the time that the second tile of a head had its turn, Q, K, V and O of 256 heads had passed through
// the cache; or, if sequences are long, 32 heads at a time read K and V that were twice as large as the cache.
//
// Backward: one kv head, or two, or four, and so on, as long as their Q, dO and sums of dQ have room in 0.6 of
// this GPU's L2 cache. With few heads, many blocks of one head run at a time. Each is one tile behind the one before,
// and finds in the cache what that one has read. Under the causal mask a round has no fewer heads than before: there
// the block of the next keys has less to do and starts later, and blocks of the same head wait for one another. Where
// several query heads read a kv head, blocks wait more: a round has 32 kv heads or more if 32 take under 1.5 of L2.
//
// What changed since ahead and fetched: the order of the work.
//
// Expected limit: as before, but less often memory. In launches back to back it is power: bytes from memory cost more
// power than bytes from the cache.
#include <algorithm>

#include "attention/padded.h"
#include "attention/schedule.h"

namespace hopper {

using attention::BackwardArgs;
using attention::ForwardArgs;
using attention::Problem;

extern const attention::Forward wide_forward;  // for D = 192 and 256
extern const attention::Backward wide_backward;
extern const attention::Rung ahead;
extern const attention::Backward fetched_backward;
void forward_ahead(const Problem& p, const ForwardArgs& args, cudaStream_t stream, int round_heads);
void backward_fetched(const Problem& p, const BackwardArgs& args, cudaStream_t stream, int round_heads);
size_t workspace_of_fetched(const Problem& p);

namespace {

void run_forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  forward_ahead(p, args, stream, attention::heads_that_run_together(p));
}

void run_backward(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  backward_fetched(p, args, stream, attention::kv_heads_that_share_the_l2(p));
}

constexpr attention::Forward forward = {attention::not_for_hopper_to_256, [](const Problem&) { return sizeof(int); },
                                        run_forward, true};
constexpr attention::Backward backward = {attention::not_for_hopper_to_256, workspace_of_fetched, run_backward};

}  // namespace

extern const attention::Rung rounds;
constinit const attention::Rung rounds = {
    .name = "rounds",
    .idea = "as many heads at a time as the L2 cache has room for",
    .forward = attention::padded<forward, attention::next_in_pages, wide_forward>,
    .backward = attention::padded<backward, attention::next_64_128_192_256, wide_backward>};

}  // namespace hopper
