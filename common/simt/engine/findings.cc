#include "simt/engine/findings.h"

#include <execinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

#include "simt/engine/device_memory.h"
#include "simt/engine/device_variables.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"
#include "simt/engine/error.h"
#include "simt/engine/modules.h"

namespace simt {
namespace {

bool watched = false;
constexpr std::size_t most_printed = 20;  // of each kind

struct Said {
  std::mutex mutex;
  std::vector<std::string> mistakes, notes, failures;
};

thread_local unsigned failures = 0, failures_before = 0;
HostTouches pinned_touched = nullptr;
std::string (*user_of_managed)(const void*, bool) = nullptr;

Said& said() {
  static Said& all = *new Said;  // outlives every static object that is still watched in its destructor
  return all;
}

void say(std::vector<std::string>& among, const char* kind, const std::string& message) {
  const std::lock_guard lock(said().mutex);
  if (std::find(among.begin(), among.end(), message) != among.end()) return;
  among.push_back(message);
  if (among.size() <= most_printed) std::fprintf(stderr, "%s: %s\n", kind, message.c_str());
}

}  // namespace

bool watching() { return watched; }
void watch_program() { watched = true; }

void found_mistake(const std::string& message) { say(said().mistakes, "mistake", message); }
void noted(const std::string& message) { say(said().notes, "note", message); }

void failed() { ++failures; }
void discarding() { failures_before = failures; }
void discarded(const char* name, const char* file, int line) {
  if (!watched || failures == failures_before) return;
  const std::string call =
      std::string(name) + " at " + text(Site{file, line}) + " failed, and the program did not look: ";
  const std::lock_guard lock(said().mutex);
  auto& all = said().failures;  // a call in a loop once
  if (std::none_of(all.begin(), all.end(), [&](const std::string& each) { return each.starts_with(call); }))
    all.push_back(call + cudaGetErrorString(last_failure()));
}
void looked_at_last_error() {
  if (!watched) return;
  const std::lock_guard lock(said().mutex);
  said().failures.clear();
}
std::vector<std::string> failures_nobody_looked_at() {
  const std::lock_guard lock(said().mutex);
  return said().failures;
}

AwaitedRange awaited;

void when_host_touches(HostTouches pinned) { pinned_touched = pinned; }
void when_host_touches_managed(std::string (*user)(const void*, bool)) { user_of_managed = user; }
bool host_touches(const void* address, bool write, const std::string& line) {
  if (!watched) return false;
  DeviceMemory& memory = DeviceMemory::instance();
  if (!memory.contains(address)) return pinned_touched != nullptr && pinned_touched(address, write, line);
  const std::string does = std::string("host code ") + (write ? "writes" : "reads") + ", at " + line + ", ";
  if (memory.is_awaited(address) && user_of_managed != nullptr) {
    const std::string user = user_of_managed(address, write);
    user.empty() ? memory.open_page(address, write) : static_cast<void>(memory.ends_wait(address));
    if (!user.empty())
      found_mistake(does + "managed memory without having waited for " + user +
                    ": cudaDeviceSynchronize() comes first");
    return true;
  }
  found_mistake(does + "device memory, " + memory.where(address) +
                ", and ends here: the host cannot reach a GPU's memory; "
                "cudaMemcpy() copies it");
  return false;
}

namespace {
// Before main() and after it, constructors and destructors of variables touch what is theirs.
bool called_by_main() {
  std::array<void*, 64> frames;
  const int depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  return std::any_of(frames.begin(), frames.begin() + depth, [](void* frame) {
    const Module* const module = module_at(frame);
    const Function* const function =
        module != nullptr ? module->function_at(reinterpret_cast<std::uintptr_t>(frame)) : nullptr;
    return function != nullptr && function->name == "main";
  });
}
}  // namespace

bool main_has_begun() {
  static std::atomic<bool> has = false;
  if (!has) has = called_by_main();
  return has;
}

static void say_of_host(const DeviceVariable& variable, const void* pc, bool write) {
  const Module* const module = module_at(variable.begin());
  const Object* const object =
      module != nullptr ? module->object_at(reinterpret_cast<std::uintptr_t>(variable.begin())) : nullptr;
  found_mistake(std::string("host code ") + (write ? "writes" : "reads") + ", at " + line_of(pc) + ", the " +
                (variable.kind() == DeviceVariable::constant ? "constant" : "device") + " variable" +
                (object != nullptr ? " " + Module::name_of(object->name) : "") +
                ", which kernels use: on a GPU the host has another one of that name; " +
                (write ? "cudaMemcpyToSymbol() writes" : "cudaMemcpyFromSymbol() reads") + " theirs");
}

// A constant has its value on the host, too.
void host_touches_variable(const void* pc, const void* address, bool write) {
  if (!watched || worker != nullptr || DeviceMemory::instance().all_open()) return;
  const DeviceVariable* const variable = DeviceVariable::at(address);
  if (variable == nullptr || variable->kind() == DeviceVariable::managed || variable->use().twin) return;
  DeviceVariable::Use& use = variable->use();
  if (use.host[write] != nullptr && !use.by_kernels) return;
  {
    static auto& seen = *new std::set<const void*>;
    const std::lock_guard lock(said().mutex);
    if (!seen.insert(pc).second) return;
  }
  const Module* const module = module_at(address);
  if (module == nullptr || !module->in_data(reinterpret_cast<std::uintptr_t>(address)) || !called_by_main()) return;
  use.host[write] = pc;
  if (use.by_kernels) say_of_host(*variable, pc, write);
}

void kernel_uses(const DeviceVariable& variable) {
  DeviceVariable::Use& use = variable.use();
  if (std::exchange(use.by_kernels, true) || use.twin) return;
  for (const bool write : {false, true})
    if (use.host[write] != nullptr) say_of_host(variable, use.host[write], write);
}

const std::vector<std::string>& mistakes() { return said().mistakes; }
const std::vector<std::string>& notes() { return said().notes; }

}  // namespace simt
