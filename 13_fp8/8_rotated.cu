// x
#include "forward.h"

namespace fp8 {
namespace {

struct Rotated {
  struct Range {
    static constexpr float start = 0, headroom = start;
  };
  static constexpr bool by_sums = true, turns = true;
  static constexpr int flush = 4;
  static constexpr attention::EightBits rounding = attention::rotated_tile;
};

}  // namespace

extern const attention::Rung rotated;
constinit const attention::Rung rotated = {.name = "rotated",
                                      .idea = "rotated",
                                      .forward = attention::padded<unpadded<Rotated>>};

}  // namespace fp8
