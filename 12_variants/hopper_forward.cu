// The forward of hopper_forward.h, for each combination of extras that a rung takes. A file of its own, because it is
// compiled for compute capability 9.0a alone.
#include "hopper_forward.h"

namespace variants::on_hopper {

template void run_forward<Plain>(const Problem& p, const ForwardArgs& args, cudaStream_t stream);
template void run_forward<Window>(const Problem& p, const ForwardArgs& args, cudaStream_t stream);
template void run_forward<Capped>(const Problem& p, const ForwardArgs& args, cudaStream_t stream);
template void run_forward<WithAlibi>(const Problem& p, const ForwardArgs& args, cudaStream_t stream);
template void run_forward<WithSink>(const Problem& p, const ForwardArgs& args, cudaStream_t stream);
template void run_forward<Any<Linear>>(const Problem& p, const ForwardArgs& args, cudaStream_t stream);
template void run_forward<Any<Softcap>>(const Problem& p, const ForwardArgs& args, cudaStream_t stream);
template void run_forward<Any<Alibi>>(const Problem& p, const ForwardArgs& args, cudaStream_t stream);

}  // namespace variants::on_hopper
