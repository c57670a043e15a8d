#include "attention/chapter.h"
#include "attention/problem.h"
namespace hopper { void forward_fitted(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool prompt); extern const attention::Rung beside; extern const attention::Forward wide_forward;}
namespace split_kv { extern const attention::Rung warpgroup, even; int warpgroup_parts(const attention::Problem& problem); }
namespace attention { std::string not_for_hopper_to_256(const Problem&) { return ""; } std::string not_for_hopper(const Problem&) { return ""; } }
void run_prompt(const attention::Problem& p, const attention::ForwardArgs& a, cudaStream_t s) { if (p.head_dim > 128) hopper::wide_forward.run(p, a, s); else if (p.head_dim > 64) hopper::forward_fitted(p, a, s, true); else hopper::beside.forward.run(p, a, s); }
void run_warpgroup(const attention::Problem& p, const attention::ForwardArgs& a, cudaStream_t s) { split_kv::warpgroup.forward.run(p, a, s); }
void run_even(const attention::Problem& p, const attention::ForwardArgs& a, cudaStream_t s) { split_kv::even.forward.run(p, a, s); }
