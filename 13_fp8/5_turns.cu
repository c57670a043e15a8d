// Chapter 13, rung 5, turns: one consumer multiplies while another one makes exponentials.
//
// The kernel is that of forward.h. Named barrier 1 + c is consumer c's turn at the tensor cores. It takes it before
// S(j) and P V(j-1), and passes it on when both are done.
//
// What changed since unscanned: the turns. Without them the consumers run in phase: all wait for tensor cores, which do
// the products of all of them side by side, and then all want exponentials. A multiprocessor has one unit for each, and
// one of them is idle at any time. In chapter 10 a turn is passed on earlier: there products take twice as long as
// exponentials, and must not wait for a turn to change hands.
//
// Expected limit: the exponentials, or products, whichever take longer; and the power that both take together.
#include "forward.h"

namespace fp8 {
namespace {

struct Turns : Direct {
  struct Range {
    static constexpr float start = 0, headroom = start;
  };
  static constexpr bool by_sums = true, turns = true;
  static constexpr attention::EightBits rounding = attention::lagging_max;
};

}  // namespace

extern const attention::Rung turns;
constinit const attention::Rung turns = {
    .name = "turns",
    .idea = "consumers take turns at the tensor cores: one multiplies while another one makes exponentials",
    .forward = attention::padded<unpadded<Turns>>};

}  // namespace fp8
