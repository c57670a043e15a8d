// x
#include "forward.h"

namespace fp8 {
namespace {

struct Sums {
  struct Range {
    static constexpr float start = 0, headroom = start;
  };
  static constexpr bool by_sums = true, turns = true;
  static constexpr int flush = 4;
  static constexpr attention::EightBits rounding = attention::lagging_max;
};

}  // namespace

extern const attention::Rung sums;
constinit const attention::Rung sums = {.name = "sums",
                                      .idea = "sums",
                                      .forward = attention::padded<unpadded<Sums>>};

}  // namespace fp8
