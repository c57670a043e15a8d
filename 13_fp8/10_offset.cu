// Chapter 13, rung 10, offset: P is where e4m3 has its bits.
//
// The kernel is that of forward.h.
//
// What changed since rotated: when m rises, the row's largest weight becomes 2^3 in place of 1. All other weights are
// eight times as large, too: those down to 2^-9 of the largest have all their bits, where it was 2^-6, and 2^-13 of it
// is still something. A lane's sum of 32 weights is 256 at most then, so what sums tell stays true.
//
// Expected limit: as before.
#include "forward.h"

namespace fp8 {
namespace {

struct Offset : Direct {
  struct Range {
    static constexpr float start = 3, headroom = start;
  };
  static constexpr bool by_sums = true, turns = true, q_held = true;
  static constexpr int flush = 1;
  static constexpr attention::EightBits rounding = attention::rotated_tile;
};

}  // namespace

extern const attention::Rung offset;
constinit const attention::Rung offset = {.name = "offset",
                                          .idea = "the heaviest weight is 8, so that small ones keep their bits",
                                          .forward = attention::padded<unpadded<Offset>>};

}  // namespace fp8
