// Chapter 13, rung 6, sums: the tensor core's sum is added up in fp32 every four tiles.
//
// The kernel is that of forward.h.
//
// What changed since turns: a tensor core keeps 13 bits behind the leading one of a sum of products in eight bits, and
// cuts off the rest (common/microbenchmarks/eight_bits.cu). Each instruction cuts again, and always towards zero. So P
// V goes to a sum of its own, and every four tiles, 512 keys, that is added to O, in fp32, and begins again. Another D
// / 2 registers, and as many additions every four tiles.
//
// Expected limit: as before.
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
constinit const attention::Rung sums = {
    .name = "sums",
    .idea = "what the tensor core has added up goes to a sum in fp32 every 512 keys",
    .forward = attention::padded<unpadded<Sums>>};

}  // namespace fp8
