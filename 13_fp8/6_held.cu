// Chapter 13, rung 6, held: Q is in registers.
//
// The kernel is that of forward.h.
//
// What changed since turns: a consumer loads its 64 rows of Q to registers, once, as the fragments that a product takes
// in the place of shared memory. In eight bits these are 16 registers of a thread at D = 128. Each instruction of S
// reads 4 KB from shared memory then, and not 6, in its 64 cycles. At D = 64 nothing changes: three consumers have no
// registers left.
//
// Expected limit: the exponentials, or products, whichever take longer; and the power that both take together.
#include "forward.h"

namespace fp8 {
namespace {

struct Held : Direct {
  struct Range {
    static constexpr float start = 0, headroom = start;
  };
  static constexpr bool by_sums = true, turns = true, q_held = true;
  static constexpr attention::EightBits rounding = attention::lagging_max;
};

}  // namespace

extern const attention::Rung held;
constinit const attention::Rung held = {.name = "held",
                                        .idea = "at D = 128 Q is in registers, and shared memory has less to do",
                                        .forward = attention::padded<unpadded<Held>>};

}  // namespace fp8
