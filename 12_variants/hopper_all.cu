// The forwards for Hopper of the rung `all`; hopper_all_backward.cu has its backwards. Files of their own, since they
// are compiled for compute capability 9.0a alone.
#include "hopper_forward.h"

namespace variants::on_hopper {

template void run_forward<CappedWindow>(const Problem&, const ForwardArgs&, cudaStream_t);
template void run_forward<WindowWithAlibi>(const Problem&, const ForwardArgs&, cudaStream_t);

}  // namespace variants::on_hopper
