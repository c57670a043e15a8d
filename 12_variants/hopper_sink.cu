// The kernels for Hopper of the rung `sink`: a file of its own, since they are compiled for compute capability 9.0a
// alone.
#include "hopper_forward.h"

namespace variants::on_hopper {

template void run_forward<WithSink>(const Problem&, const ForwardArgs&, cudaStream_t);

}  // namespace variants::on_hopper
