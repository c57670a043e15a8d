#include "simt/trace/host_objects.h"

#include <cstring>

#include "simt/cuda/host_checks.h"
#include "simt/cuda/launch_syntax.h"
#include "simt/engine/device_memory.h"
#include "simt/engine/device_variables.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/findings.h"
#include "simt/engine/modules.h"

namespace simt {
namespace {

const Module& program() {
  static const Module none = {};
  static const char here = 0;
  static const Module* const module = module_at(&here);
  return module != nullptr ? *module : none;
}

const Object* table_of(const void* word) {
  std::uintptr_t value;
  std::memcpy(&value, word, sizeof value);
  return program().table_at(value);
}

bool reached_by_kernels(const void* address) {
  return DeviceMemory::instance().contains(address) || DeviceVariable::at(address) != nullptr;
}

void erase(std::set<std::uintptr_t>& from, std::uintptr_t begin, std::size_t bytes) {
  from.erase(from.lower_bound(begin), from.lower_bound(begin + bytes));
}

}  // namespace

HostObjects& HostObjects::instance() {
  static HostObjects& objects = *new HostObjects;
  return objects;
}

bool HostObjects::is_in_table(std::uintptr_t address, const void* object) {
  const Object* const table = table_of(object);
  return table != nullptr && address >= table->begin && address < table->end;
}

bool HostObjects::has(std::uintptr_t object) {
  const std::lock_guard lock(mutex_);
  return on_device_.contains(object);
}

void HostObjects::made_by_kernel(const void* object) {
  if (!watching() || !reached_by_kernels(object)) return;
  const std::lock_guard lock(mutex_);
  any_of_kernels_ = from_device_.insert(reinterpret_cast<std::uintptr_t>(object)).second || any_of_kernels_;
}

void HostObjects::made(const void* object) {
  if (!watching()) return;
  if (any_of_kernels_) {
    const std::lock_guard lock(mutex_);
    from_device_.erase(reinterpret_cast<std::uintptr_t>(object));
  }
  if (!reached_by_kernels(object) &&
      !(host_checks::kernels_reach_host() && host_checks::registered(object).begin != nullptr))
    return;
  argument(object);
}

void HostObjects::copied(const void* to, const void* from, std::size_t bytes) {
  if (program().tables.empty()) return;
  const auto a = reinterpret_cast<std::uintptr_t>(from), b = reinterpret_cast<std::uintptr_t>(to);
  const bool to_device = reached_by_kernels(to), from_device = reached_by_kernels(from);
  const std::lock_guard lock(mutex_);
  for (auto* const each : {&on_device_, &from_device_}) erase(*each, b, bytes);
  for (std::size_t i = (8 - a % 8) % 8; i + 8 <= bytes; i += 8) {
    if (table_of(static_cast<const char*>(from) + i) == nullptr) continue;
    const bool of_the_host = from_device ? on_device_.contains(a + i) : !from_device_.contains(a + i);
    if (to_device && of_the_host) any_ = on_device_.insert(b + i).second || any_;
    if (!of_the_host) any_of_kernels_ = from_device_.insert(b + i).second || any_of_kernels_;
  }
}

// A virtual call reads the address of the table from the object, and then an entry of the table.
void HostObjects::host_reads(const void* pc, const void* address) {
  static thread_local const void* object = nullptr;
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  if (object != nullptr && is_in_table(a, object))
    found_mistake("host code makes, at " + line_of(pc) +
                  ", a virtual call for an object that a kernel has made: its table of functions is the device's; only "
                  "what host code has made can be called so there");
  const std::lock_guard lock(mutex_);
  object = from_device_.contains(a) ? address : nullptr;
}

bool HostObjects::made_by_a_kernel(const void* object) {
  const std::lock_guard lock(mutex_);
  return from_device_.contains(reinterpret_cast<std::uintptr_t>(object));
}

void HostObjects::forget(const void* memory, std::size_t bytes) {
  if (!any_ && !any_of_kernels_) return;
  const std::lock_guard lock(mutex_);
  for (auto* const each : {&on_device_, &from_device_}) erase(*each, reinterpret_cast<std::uintptr_t>(memory), bytes);
}

void HostObjects::argument(const void* object) {
  const std::lock_guard lock(mutex_);
  any_ = on_device_.insert(reinterpret_cast<std::uintptr_t>(object)).second || any_;
}

// Those of its members, too: the host's copy of each has the host's table.
void argument_with_tables(const void* object, std::size_t bytes) {
  if (!watching() || !kernels_are_traced() || program().tables.empty()) return;
  const auto* const begin = static_cast<const char*>(object);
  for (std::size_t i = 0; i + sizeof(void*) <= bytes; i += sizeof(void*))
    if (table_of(begin + i) != nullptr) HostObjects::instance().argument(begin + i);
}

}  // namespace simt
