#include "simt/engine/observer.h"

// Code that tells of its accesses calls this when it is loaded. trace/tsan.cc, which has it, is linked where there is
// such code.
extern "C" __attribute__((weak)) void __tsan_init();

namespace simt {
namespace {
Observers& all() {
  static Observers& observers = *new Observers;  // outlives every static object that launches in its destructor
  return observers;
}
}  // namespace

const Observers& observers() { return all(); }
void add(Observer& observer) { all().push_back(&observer); }
void remove(Observer& observer) { std::erase(all(), &observer); }

bool kernels_are_traced() { return __tsan_init != nullptr; }

}  // namespace simt
