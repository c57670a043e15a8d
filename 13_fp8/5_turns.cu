// x
#include "forward.h"

namespace fp8 {
namespace {

struct Turns {
  struct Range {
    static constexpr float start = 0, headroom = start;
  };
  static constexpr bool by_sums = true, turns = true;
  static constexpr int flush = 0;
  static constexpr attention::EightBits rounding = attention::lagging_max;
};

}  // namespace

extern const attention::Rung turns;
constinit const attention::Rung turns = {.name = "turns",
                                      .idea = "turns",
                                      .forward = attention::padded<unpadded<Turns>>};

}  // namespace fp8
