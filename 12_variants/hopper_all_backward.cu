// The backwards for Hopper of the rung `all`.
#include "hopper_backward.h"

namespace variants::on_hopper {

template void run_backward<CappedWindow>(const Problem&, const BackwardArgs&, cudaStream_t);
template void run_backward<WindowWithAlibi>(const Problem&, const BackwardArgs&, cudaStream_t);

}  // namespace variants::on_hopper
