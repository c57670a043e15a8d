// x
#include "forward.h"

namespace fp8 {
namespace {

struct Offset {
  struct Range {
    static constexpr float start = 3, headroom = start;
  };
  static constexpr bool by_sums = true, turns = true;
  static constexpr int flush = 4;
  static constexpr attention::EightBits rounding = attention::rotated_tile;
};

}  // namespace

extern const attention::Rung offset;
constinit const attention::Rung offset = {.name = "offset",
                                      .idea = "offset",
                                      .forward = attention::padded<unpadded<Offset>>};

}  // namespace fp8
