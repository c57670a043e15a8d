// Chapter 13, rung 11, followed: m follows the row maximum in the first tiles of keys.
//
// The kernel is that of forward.h. It is the chapter's result.
//
// What changed since offset: in the first two tiles of keys m follows the row maximum, as in direct: a lane's sum above
// 8 is enough to look for it. So the heaviest of 256 keys is exactly 8. Otherwise it is rounded like all others unless
// the first tile has it, which counts where keys are few: each of them has more of the sum. At D = 64 it is three
// tiles, and m rises before their weights are made: faster there, and slower at D = 128.
//
// It also takes tensors that are e4m3 already (from_e4m3.h).
//
// Expected limit: as before. From D = 128 on most weights of the second tile are made twice, which short rows feel.
#include "from_e4m3.h"

namespace fp8 {
namespace {

struct Followed : Direct {
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

extern const attention::Rung followed;
constinit const attention::Rung followed = {
    .name = "followed",
    .idea = "in the first tiles of keys m follows the row maximum, so that their heaviest weight is exact",
    .forward = attention::padded<unpadded<Followed>>,
    .from_e4m3 = of_e4m3<Followed>};

}  // namespace fp8
