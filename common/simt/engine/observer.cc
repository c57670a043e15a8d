#include "simt/engine/observer.h"

namespace simt {

// Of trace/tsan.cc, which is linked where kernels are traced, and only there.
__attribute__((weak)) Observer& first_observer();

namespace {

Observers& all() {
  // Outlives every static object that launches in its destructor.
  static Observers& observers = *new Observers(kernels_are_traced() ? Observers{&first_observer()} : Observers());
  return observers;
}

}  // namespace

const Observers& observers() { return all(); }
void add(Observer& observer) { all().push_back(&observer); }
void remove(Observer& observer) { std::erase(all(), &observer); }

bool kernels_are_traced() { return &first_observer != nullptr; }

void (*host_writes)(const void* address) = nullptr;

}  // namespace simt
