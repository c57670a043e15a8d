// Likewise those of packed sequences with a window or a score function, of which the rung `all` has one for each.
#include "hopper_backward.h"
#include "hopper_forward.h"

namespace variants::on_hopper {

template void run_forward<PackedWithAny>(const Problem&, const ForwardArgs&, cudaStream_t);
template void run_backward<PackedWithAny>(const Problem&, const BackwardArgs&, cudaStream_t);

}  // namespace variants::on_hopper
