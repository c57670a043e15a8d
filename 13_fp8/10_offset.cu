// Chapter 13, rung 10, offset: P is where e4m3 has its bits.
//
// The kernel is that of forward.h. It is the chapter's result.
//
// What changed since rotated: when m rises, the row's largest weight becomes 2^3 in place of 1. All other weights are
// eight times as large, too: those down to 2^-9 of the largest have all their bits, where it was 2^-6, and 2^-13 of it
// is still something. A lane's sum of 32 weights is 256 at most then, so what sums tell stays true.
//
// And in the first two tiles of keys m follows the row maximum, as in direct: a lane's sum above 8 is enough to look
// for it. So the heaviest of 256 keys is exactly 8. Otherwise it is rounded like all others unless the first tile has
// it, which counts where keys are few: each of them has more of the sum. At D = 64 it is three tiles, and m rises
// before their weights are made: faster there, and slower at D = 128.
//
// It also takes tensors that are e4m3 already (take_tiles in quantize_tiles.h).
//
// Expected limit: as before. From D = 128 on most weights of the second tile are made twice, which short rows feel.
#include "forward.h"

namespace fp8 {
namespace {

struct Offset : Direct {
  struct Range {
    static constexpr float start = 3, headroom = start;
  };
  template <int D>
  static constexpr int followed = D == 64 ? 3 : 2;
  template <int D>
  static constexpr bool before = D == 64;
  static constexpr bool by_sums = true, turns = true, q_held = true;
  static constexpr int flush = 1;
  static constexpr attention::EightBits rounding = attention::rotated_tile;
};

}  // namespace

extern const attention::Rung offset;
constinit const attention::Rung offset = {.name = "offset",
                                          .idea = "the heaviest weight is 8, so that small ones keep their bits",
                                          .forward = attention::padded<unpadded<Offset>>,
                                          .from_e4m3 = of_e4m3<Offset>};

}  // namespace fp8
