#include "simt/front/front.h"

#include "simt/engine/engine.h"

namespace simt {

constinit thread_local bool dry_calling = false;

namespace {
thread_local const void* address = nullptr;
}

__attribute__((noinline)) bool end_dry_call() {
  address = __builtin_return_address(0);
  dry_calling = false;
  return true;
}

const void* dry_called() { return address; }

bool in_kernel() { return worker != nullptr && worker->in_kernel(); }

}  // namespace simt
