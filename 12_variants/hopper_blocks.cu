// The kernels for Hopper of the rung `blocks`: a file of its own, since they are compiled for compute capability 9.0a
// alone.
#include "hopper_backward.h"
#include "hopper_forward.h"

namespace variants::on_hopper {

template void run_forward<Listed>(const Problem&, const ForwardArgs&, cudaStream_t);
template void run_backward<Listed>(const Problem&, const BackwardArgs&, cudaStream_t);

}  // namespace variants::on_hopper
