// x
#include "forward.h"

namespace fp8 {
namespace {

struct Lazy {
  struct Range {
    static constexpr float start = 0, headroom = 8.75f;
  };
  static constexpr bool by_sums = false, turns = false;
  static constexpr int flush = 0;
  static constexpr attention::EightBits rounding = attention::lagging_max;
};

}  // namespace

extern const attention::Rung lazy;
constinit const attention::Rung lazy = {.name = "lazy",
                                      .idea = "m may lag: x up to 8, P up to 256",
                                      .forward = attention::padded<unpadded<Lazy>>};

}  // namespace fp8
