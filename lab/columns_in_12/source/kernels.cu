// The backwards of one version of chapter 12: -DVERSION=base or columns, -I of its tree.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <variant>
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define on_hopper CAT(on_hopper_, VERSION)
#include "12_variants/hopper_backward.h"
namespace variants::on_hopper {
size_t bytes(const Problem& p) { return backward_workspace(p); }
void run_any(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  const bool window = p.window_left >= 0 || p.window_right >= 0;
  const auto run = [&]<class X>() { run_backward<X>(with_both_sides<X>(p), args, stream); };
  if (p.alibi)
    window ? run.template operator()<WindowWithAlibi>() : run.template operator()<WithAlibi>();
  else
    window ? run.template operator()<Window>() : run.template operator()<Plain>();
}
}  // namespace variants::on_hopper
