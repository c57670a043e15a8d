// Chapter 13, rung 3, lazy: m rises only where a weight would be too large for e4m3.
//
// The kernel is that of forward.h. It starts from direct and not from inside: a kernel that transposes V before costs
// less than the stage and the registers that a transposition inside takes from the loop.
//
// What changed since direct: m may lag behind the row maximum, as it does in chapter 06's 6_lazy and after, here by up
// to 8.75: P is at most 2^8.75 = 431, and e4m3 goes up to 448. In `direct` m rises whenever one of a warp's 16 rows
// sees a new maximum, and the warps of a warpgroup wait for each other at the next product; so nearly every tile paid
// for it. The price: the heaviest weight is no longer 1, so it is rounded like the others.
//
// Expected limit: the exponentials, and who waits for whom.
#include "forward.h"

namespace fp8 {
namespace {

struct Lazy : Direct {
  struct Range {
    static constexpr float start = 0, headroom = 8.75f;
  };
  static constexpr attention::EightBits rounding = attention::lagging_max;
};

}  // namespace

extern const attention::Rung lazy;
constinit const attention::Rung lazy = {
    .name = "lazy",
    .idea = "m may lag: it rises only where a weight would be larger than e4m3 can be",
    .forward = attention::padded<unpadded<Lazy>>};

}  // namespace fp8
