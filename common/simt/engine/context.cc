#include "simt/engine/context.h"

#if !SIMT_OWN_SWITCH
#include <boost/context/detail/fcontext.hpp>
#endif

namespace simt {

#if SIMT_OWN_SWITCH

// As if `main` had been called from address 0: there stack traces end.
void make_context(Context& context, char* stack, unsigned long bytes, void (*main)()) {
  auto* top = reinterpret_cast<void**>(stack + bytes / 16 * 16 - 16);
  top[0] = top[1] = nullptr;
  context = {top + 1, nullptr, main};
}

#else

namespace {
// Whoever comes says which stack it left, so that its context can be kept.
Context* arrive(boost::context::detail::transfer_t from) {
  const auto* turn = static_cast<Turn*>(from.data);
  turn->from->stack = from.fctx;
  return turn->to;
}
}  // namespace

void make_context(Context& context, char* stack, unsigned long bytes, void (*main)()) {
  const auto begin = [](boost::context::detail::transfer_t from) { arrive(from)->code(); };
  context = {boost::context::detail::make_fcontext(stack + bytes, bytes, begin), nullptr, main};
}

void make_room(Turn turn) {
  if (turn.from != turn.to) arrive(boost::context::detail::jump_fcontext(turn.to->stack, &turn));
}

#endif

}  // namespace simt
