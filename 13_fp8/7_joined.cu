// Chapter 13, rung 7, joined: the end of one tile of rows and the beginning of the next one are a single turn.
//
// The kernel is that of forward.h.
//
// What changed since held: a tile of rows began with an S that had no P V beside it, and ended with a P V that had no
// S: two products by themselves, each with its own wait. Now the last P V of a tile and the first S of the next one are
// started together, as all others are. Q of the next tile takes the registers of the one before, which the last S has
// read. O / l is made when the turn has been passed on, and the other consumer multiplies meanwhile. So a tile of rows
// costs as many turns as it has tiles of keys, and not one more. Only a thread block's first S and its last P V are
// left.
//
// Expected limit: as before; what is gained is the same for every tile of rows, so it shows where keys are few.
#include "forward.h"

namespace fp8 {
namespace {

struct Joined : Direct {
  struct Range {
    static constexpr float start = 0, headroom = start;
  };
  static constexpr bool by_sums = true, turns = true, q_held = true, joined = true;
  static constexpr attention::EightBits rounding = attention::lagging_max;
};

}  // namespace

extern const attention::Rung joined;
constinit const attention::Rung joined = {
    .name = "joined",
    .idea = "the last product of a tile of rows and the first one of the next tile are one turn",
    .forward = attention::padded<unpadded<Joined>>};

}  // namespace fp8
