// Chapter 13, rung 1, direct: chapter 10's loop, with both products in e4m3.
//
// Three small kernels make e4m3 and a scale of each of Q, K and V first, and transpose V (quantize.h). The kernel after
// them is that of forward.h, with the constants of the struct Direct: read it there, from top to bottom. It is the loop
// of all rungs of this chapter, and what only others have stands behind a constant that is false here.
//
// What changed since chapter 10's 10_dynamic: Q, K, V and P are e4m3. A product takes 32 elements of the inner index
// in place of 16, from as many bytes. The scales of Q and K go into that of S, and V's into 1 / l. Four columns of S
// become a register of P, of the keys that quantize.h puts into that order. m is the row maximum so far, so that P is
// at most 1 and the heaviest key of all has no rounding: e4m3 has four bits of it where fp16 has eleven. O has a place
// of its own, since Q's is half as large.
//
// Expected limit: the exponentials. Products take half the time that they did, and everything between them what it did.
#include "forward.h"

namespace fp8 {

extern const attention::Rung direct;
constinit const attention::Rung direct = {
    .name = "direct",
    .idea =
        "chapter 10's loop on e4m3: a scale for each tensor, and a V that is transposed before, its keys in the "
        "order in which registers hold P",
    .forward = attention::padded<unpadded<Direct>>};

}  // namespace fp8
