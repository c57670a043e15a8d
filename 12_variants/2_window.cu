// Chapter 12, rung 2, window: keys begin, too, and do not only end.
//
// Query i stands beside key i + Nk - Nq, and sees `left` keys before that one and `right` keys after it. With a window
// of W keys the work of a row does not grow with N any more.
//
// What changed since 1_views: the interval of keys has two ends, and so has everything that is made of it.
//   - Forward: the loop begins at the first key that the block's first row sees, in whole stages. A warp leaves out
//     tiles on both sides. A tile is masked if it crosses either edge: Br / Bc tiles at each end, one more where the
//     edge does not begin with a tile, whatever the window's length is.
//   - Backward: the tiles of queries that see a block's keys end, too, and may be none. The block that adds first to a
//     tile of dQ stores, the last converts: neither is the head's first or last block any more.
//
// Expected limit: the tiles on the two edges. Of the W + Br keys that a block goes through, 2 Br are in such tiles, and
// half of their pairs are thrown away.
#include "backward.h"
#include "forward.h"

namespace variants {

extern const attention::Forward window_forward;
extern const attention::Backward window_backward;
constinit const attention::Forward window_forward = {.unsupported = not_8_to_128_nor_own_v,
                                                     .workspace_bytes = forward_workspace,
                                                     .run = run_forward<Window>,
                                                     .writes_lse = true,
                                                     .takes = attention::views | attention::own_v | attention::window};
constinit const attention::Backward window_backward = {
    .unsupported = backward_not_8_to_128_nor_own_v,
    .workspace_bytes = backward_workspace,
    .run = run_backward<Window>,
    .takes = attention::views | attention::own_v | attention::window};

extern const attention::Rung window;
constinit const attention::Rung window = {
    .name = "window",
    .idea = "tiles are left out on both sides: a query sees its neighbourhood",
    .forward = attention::padded<window_forward, attention::next_64_128_192_256>,
    .backward = attention::padded<window_backward, attention::next_64_128_192_256>};

}  // namespace variants
