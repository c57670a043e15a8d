// The kernels for Hopper of the rung `all`: a file of its own, since they are compiled for compute capability 9.0a
// alone.
#include "hopper_backward.h"
#include "hopper_forward.h"

namespace variants::on_hopper {

template void run_forward<Any<Linear>>(const Problem&, const ForwardArgs&, cudaStream_t);
template void run_forward<Any<Softcap>>(const Problem&, const ForwardArgs&, cudaStream_t);
template void run_forward<Any<Alibi>>(const Problem&, const ForwardArgs&, cudaStream_t);
template void run_backward<Any<Softcap>>(const Problem&, const BackwardArgs&, cudaStream_t);
template void run_backward<Any<Alibi>>(const Problem&, const BackwardArgs&, cudaStream_t);

}  // namespace variants::on_hopper
