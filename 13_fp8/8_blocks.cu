// Chapter 13, rung 8, blocks: a scale for each tile of Q, K and V.
//
// The kernel is that of forward.h, and the one before it that of quantize_tiles.h.
//
// What changed since sums: a tile is 128 rows of a head, and a scale is a power of two. Those of Q and K go into the
// scale of S, tile by tile. That of V cannot go into O, to which all tiles are added up. It goes into x: a tile whose V
// was divided by 2^b has weights that are 2^b times as large, for the product, and counts 2^-b times as much in l. So m
// is the maximum of x + b. No kernel looks for the largest of all any more: a block reads its tile once, and one launch
// does what took three.
//
// Expected limit: as before.
#include "forward.h"

namespace fp8 {
namespace {

struct Blocks : Direct {
  struct Range {
    static constexpr float start = 0, headroom = start;
  };
  static constexpr bool by_sums = true, turns = true, q_held = true;
  static constexpr int flush = 1;
  static constexpr attention::EightBits rounding = attention::scale_of_tile;
};

}  // namespace

extern const attention::Rung blocks;
constinit const attention::Rung blocks = {
    .name = "blocks",
    .idea = "a scale for each tile: Q and K in that of S, V in the exponent; one kernel before, not three",
    .forward = attention::padded<unpadded<Blocks>>};

}  // namespace fp8
