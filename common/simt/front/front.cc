#include "simt/front/front.h"

#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "simt/engine/device_memory.h"
#include "simt/engine/device_variables.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"
#include "simt/engine/findings.h"
#include "simt/engine/host_ranges.h"
#include "simt/trace/host_objects.h"

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

void restricted(std::initializer_list<Restricted> parameters) {
  if (!watching()) return;
  static std::mutex mutex;
  static auto& said = *new std::set<const void*>;
  const std::lock_guard lock(mutex);
  for (const Restricted* one = parameters.begin(); one != parameters.end(); ++one)
    for (const Restricted* other = one + 1; other != parameters.end(); ++other)
      if (one->address == other->address && one->address != nullptr && (one->written || other->written) &&
          said.insert(worker->launch().kernel).second)
        noted("kernel " + kernel_name(worker->launch().kernel) + " gets one address for " + one->name + " and " +
              other->name +
              ", which are __restrict__: nvcc may read through one of them before it has written through " +
              "the other");
}

void construction_begins() {
  if (in_kernel()) worker->computes(true);
}

void construction_ends(void* object, std::size_t bytes) {
  if (!in_kernel()) return;
  worker->computes(false);
  std::memset(object, 0xff, bytes);
}

bool on_the_host() { return worker == nullptr && main_has_begun(); }

void host_function_in_kernel(const char* name, const void* caller) {
  worker->fail(
      cudaErrorIllegalAddress, &worker->current(), line_of(caller),
      std::string("a call of ") + name + ", which is the host's: a kernel can only call functions with __device__");
}

void own_function_in_kernel(const char* name, const char* file, int line) {
  if (worker->computing()) return;  // the constructor of a shared object
  worker->fail(cudaErrorIllegalAddress, &worker->current(), text(Site{file, line}),
               std::string("a kernel calls ") + name + "(), which is the host's: it needs __host__ __device__");
}

void function_of_both_in_kernel(const void* function, const char* file, int line, const void* caller) {
  worker->fail(cudaErrorIllegalAddress, &worker->current(), line_of(caller),
               "a call of " + taken_by_the_host(kernel_name(function), {file, line}));
}

void shadow_for_a_kernel(const char* name, const void* variable, const char* file, int line) {
  if (!watching() || worker != nullptr || DeviceVariable::at(variable) == nullptr) return;
  static std::mutex mutex;
  static auto& said = *new std::set<std::pair<std::string, int>>;
  const std::lock_guard lock(mutex);
  if (said.insert({std::string(name) + " " + file, line}).second)
    found_mistake(
        "host code gives a kernel, at " + text(Site{file, line}) + ", the address of " + name +
        " by its name, which on a GPU is that of the host's shadow of it: kernels use the variable itself, or "
        "what cudaGetSymbolAddress() gives");
}

// Thrust's algorithms are loops of the host.
void given_to_a_child(const volatile void* address, const void* kernel) {
  if (worker->on_a_fiber(reinterpret_cast<std::uintptr_t>(address)))
    worker->fail(cudaErrorIllegalAddress, &worker->current(), "",
                 "it gives kernel " + kernel_name(kernel) +
                     ", which it launches, the address of a variable of its own: no other thread can reach that");
}

void host_asks_for_type(const volatile void* object, const char* file, int line) {
  if (HostObjects::any_of_kernels() && HostObjects::instance().made_by_a_kernel(const_cast<const void*>(object)))
    found_mistake("host code asks, at " + text(Site{file, line}) +
                  ", for the type of an object that a kernel has made (dynamic_cast): its table of functions is the "
                  "device's; only of what host code has made can it be asked there");
}

void device_function_on_host(const char* name, const void* caller) {
  if (!watching() || worker != nullptr || DeviceMemory::instance().all_open()) return;
  found_mistake(
      "host code calls, at " + line_of(caller) + ", " + name +
      ", which is the device's, by the address that device code has of it: on a GPU that is no address of the "
      "host's");
}

}  // namespace simt
