// The kernels for Hopper of the rung `packed`: a file of its own, since they are compiled for compute capability 9.0a
// alone.
#include "hopper_backward.h"
#include "hopper_forward.h"

namespace variants::on_hopper {

template void run_forward<Packed>(const Problem&, const ForwardArgs&, cudaStream_t);
template void run_backward<Packed>(const Problem&, const BackwardArgs&, cudaStream_t);

// With a window or a score function, of which the rung `all` has one for each
template void run_forward<PackedWithAny>(const Problem&, const ForwardArgs&, cudaStream_t);
template void run_backward<PackedWithAny>(const Problem&, const BackwardArgs&, cudaStream_t);

}  // namespace variants::on_hopper
