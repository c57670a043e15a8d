// x
#include "forward.h"

namespace fp8 {
namespace {

struct Beside {
  struct Range {
    static constexpr float start = 0, headroom = 8.75;
  };
  static constexpr bool beside = true;
  static constexpr int flush = 0;
  static constexpr attention::EightBits rounding = attention::lagging_max;
};

}  // namespace

extern const attention::Rung beside;
constinit const attention::Rung beside = {.name = "beside",
                                      .idea = "exponentials beside P V",
                                      .forward = attention::padded<unpadded<Beside>>};

}  // namespace fp8
