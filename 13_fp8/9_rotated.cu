// Chapter 13, rung 9, rotated: Q and K are multiplied by a random Hadamard matrix before they are rounded.
//
// The kernel is that of forward.h, and the one before it that of quantize_tiles.h.
//
// What changed since blocks: an orthogonal matrix leaves all products of a row of Q and one of K as they are. This one
// has entries 1 and -1, and spreads a single large element over all D of its row: then it needs no range that the
// others lack. The matrix is not normalized, so S is divided by D.
//
// Expected limit: as before; the kernel before has seven additions more for each element.
#include "forward.h"

namespace fp8 {
namespace {

struct Rotated : Direct {
  struct Range {
    static constexpr float start = 0, headroom = start;
  };
  static constexpr bool by_sums = true, turns = true, q_held = true;
  static constexpr int flush = 1;
  static constexpr attention::EightBits rounding = attention::rotated_tile;
};

}  // namespace

extern const attention::Rung rotated;
constinit const attention::Rung rotated = {
    .name = "rotated",
    .idea = "a random Hadamard matrix spreads what is large in Q and K over their rows",
    .forward = attention::padded<unpadded<Rotated>>};

}  // namespace fp8
