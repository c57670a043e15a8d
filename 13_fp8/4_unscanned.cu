// Chapter 13, rung 4, unscanned: nobody looks for the largest x. Sums tell.
//
// The kernel is that of forward.h.
//
// What changed since lazy: no weight is larger than the sum that a lane has of its 32 weights of a row, and these sums
// are made anyway. A sum of at most 448 says that no weight was cut off. Only if one is larger, which happens about as
// often as m had to rise before, the row maximum is looked for, m rises, and the weights are made again from x. So
// 33 instructions of about 400 are gone, and a vote that the exponentials had to wait for.
//
// Expected limit: the exponentials, and who waits for whom.
#include "forward.h"

namespace fp8 {
namespace {

struct Unscanned : Direct {
  struct Range {
    static constexpr float start = 0, headroom = start;
  };
  static constexpr bool by_sums = true;
  static constexpr attention::EightBits rounding = attention::lagging_max;
};

}  // namespace

extern const attention::Rung unscanned;
constinit const attention::Rung unscanned = {
    .name = "unscanned",
    .idea = "nobody looks for the largest score: the sums of weights say whether one was too large",
    .forward = attention::padded<unpadded<Unscanned>>};

}  // namespace fp8
