#include "vf.h"
namespace variants::on_hopper { namespace FN {
using X =
#if KIND == 0
Plain
#elif KIND == 1
Capped
#elif KIND == 2
WithAlibi
#else
Window
#endif
;
using T_ = __nv_bfloat16;
}}
#define CAT2(a,b) a##b
#define CAT(a,b) CAT2(a,b)
void CAT(run_,FN)(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream) {
  using namespace variants::on_hopper::FN;
  if (p.head_dim == 64) {
    if (DIMS & 1) launch_forward<T_, 64, 3, X>(p, args, stream);
  } else if (DIMS & 2) launch_forward<T_, 128, 3, X>(p, args, stream);
}
