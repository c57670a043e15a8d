// x
#include "forward.h"

namespace fp8 {
namespace {

struct Blocks {
  struct Range {
    static constexpr float start = 0, headroom = start;
  };
  static constexpr bool by_sums = true, turns = true;
  static constexpr int flush = 4;
  static constexpr attention::EightBits rounding = attention::scale_of_tile;
};

}  // namespace

extern const attention::Rung blocks;
constinit const attention::Rung blocks = {.name = "blocks",
                                      .idea = "blocks",
                                      .forward = attention::padded<unpadded<Blocks>>};

}  // namespace fp8
