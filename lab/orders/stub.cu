#include <string>
#include "attention/dispatch.h"
#include "attention/padded.h"
namespace hopper { extern const attention::Forward wide_forward; constinit const attention::Forward wide_forward = {}; void forward_fitted(const attention::Problem&, const attention::ForwardArgs&, cudaStream_t, bool) {} }
namespace attention { std::string not_for_hopper_to_256(const Problem&) { return ""; } }
namespace hopper { int consumers_for(const attention::Problem& p) { return p.seq_q < 1024 ? 2 : 3; } }
