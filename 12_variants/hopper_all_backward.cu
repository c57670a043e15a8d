// The backwards for Hopper of the rung `all`.
#include "hopper_backward.h"

namespace variants::on_hopper {

template void run_backward<Any<Softcap>>(const Problem&, const BackwardArgs&, cudaStream_t);
template void run_backward<Any<Alibi>>(const Problem&, const BackwardArgs&, cudaStream_t);

}  // namespace variants::on_hopper
