// Chapter 13, rung 7, sums: the tensor core's sum is added up in fp32 after every tile.
//
// The kernel is that of forward.h.
//
// What changed since held: a tensor core keeps 13 bits behind the leading one of a sum of products in eight bits, and
// cuts off the rest (common/microbenchmarks/eight_bits.cu). Each instruction cuts again, and always towards zero. So
// P V goes to a sum of its own, which begins anew with every tile of 128 keys, and is added to O in fp32. Another D / 2
// registers, and as many additions a tile, made while the other consumer multiplies.
//
// At D = 256 O has 128 registers and S 64. So P V waits until S is used up, and then takes the place of S, a quarter at
// a time: while one is added to O, the next is made in the other half of these registers. The next S comes behind them
// in two halves, and so x is made after the turn.
//
// Expected limit: as before. At D = 256 products of half as many columns read more of shared memory, and a turn is
// longer by the last addition.
#include "forward.h"

namespace fp8 {
namespace {

struct Sums : Direct {
  struct Range {
    static constexpr float start = 0, headroom = start;
  };
  static constexpr bool by_sums = true, turns = true, q_held = true;
  static constexpr int flush = 1;
  static constexpr attention::EightBits rounding = attention::lagging_max;
};

}  // namespace

extern const attention::Rung sums;
constinit const attention::Rung sums = {
    .name = "sums",
    .idea = "what the tensor core has added up goes to a sum in fp32 after every tile of keys",
    .forward = attention::padded<unpadded<Sums>>};

}  // namespace fp8
