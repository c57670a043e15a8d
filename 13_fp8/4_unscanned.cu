// x
#include "forward.h"

namespace fp8 {
namespace {

struct Unscanned {
  struct Range {
    static constexpr float start = 0, headroom = start;
  };
  static constexpr bool by_sums = true, turns = false;
  static constexpr int flush = 0;
  static constexpr attention::EightBits rounding = attention::lagging_max;
};

}  // namespace

extern const attention::Rung unscanned;
constinit const attention::Rung unscanned = {.name = "unscanned",
                                      .idea = "no scan",
                                      .forward = attention::padded<unpadded<Unscanned>>};

}  // namespace fp8
