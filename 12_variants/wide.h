// Head dims above 128: the kernels that chapters 08 and 10 have for them, which take strides. The other extras end at
// 128. (A V with its own head dim is the loops' own: extras.h.)
#pragma once

#include <algorithm>
#include <string>

#include "attention/padded.h"
#include "hopper.h"

namespace causal_earlystop {
extern const attention::Forward wide_forward;
extern const attention::Backward wide_backward;
}  // namespace causal_earlystop
namespace hopper {
extern const attention::Forward wide_forward;
extern const attention::Backward wide_backward;
}  // namespace hopper

namespace variants::wide {

inline bool takes(const Problem& p) { return p.head_dim > 128 && p.v_dim() == p.head_dim; }

// For Pass::unsupported, beside what the loops say for other problems.
inline std::string unsupported(const Problem& p, std::string (*by_loops)(const Problem&)) {
  if (p.v_dim() != p.head_dim) return by_loops(p);
  const std::string why = attention::extras_unsupported(p, attention::views);
  if (why.empty()) return attention::head_dim_not_8_to_256(p);
  if (!takes(p)) return by_loops(p);
  return "head-dim is " + std::to_string(p.head_dim) + ": above 128 " + why;
}

// Each loop for the head dims that it has; whatever is between them is padded.
template <class Pass>
size_t workspace(const Pass& on_hopper, const Pass& elsewhere, const Problem& p) {
  return std::max(padded_workspace(on_hopper, p, attention::next_64_128_192_256(p.head_dim)),
                  padded_workspace(elsewhere, p, attention::next_64_128_256(p.head_dim)));
}
template <class Pass, class Args>
void run(const Pass& on_hopper, const Pass& elsewhere, const Problem& p, const Args& args, cudaStream_t stream) {
  if (on_hopper.unsupported(p).empty() && on_hopper::fits(p, args))
    run_padded(on_hopper, p, args, attention::next_64_128_192_256(p.head_dim), stream);
  else
    run_padded(elsewhere, p, args, attention::next_64_128_256(p.head_dim), stream);
}

inline size_t forward_workspace(const Problem& p) {
  return workspace(hopper::wide_forward, causal_earlystop::wide_forward, p);
}
inline void run_forward(const Problem& p, const attention::ForwardArgs& args, cudaStream_t stream) {
  run(hopper::wide_forward, causal_earlystop::wide_forward, p, args, stream);
}
inline size_t backward_workspace(const Problem& p) {
  return workspace(hopper::wide_backward, causal_earlystop::wide_backward, p);
}
inline void run_backward(const Problem& p, const attention::BackwardArgs& args, cudaStream_t stream) {
  run(hopper::wide_backward, causal_earlystop::wide_backward, p, args, stream);
}

// The head dim of the loops' own kernels, or as it is.
constexpr int next_64_128(int head_dim) { return head_dim <= 128 ? attention::next_64_128_256(head_dim) : head_dim; }

}  // namespace variants::wide
