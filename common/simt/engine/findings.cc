#include "simt/engine/findings.h"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "simt/engine/device_memory.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/error.h"

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
  const std::lock_guard lock(said().mutex);
  said().failures.push_back(std::string(name) + " at " + text(Site{file, line}) +
                            " failed, and the program did not look: " + cudaGetErrorString(last_failure()));
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

void when_host_touches(HostTouches pinned) { pinned_touched = pinned; }
bool host_touches(const void* address, bool write, const std::string& line) {
  if (!watched) return false;
  DeviceMemory& memory = DeviceMemory::instance();
  if (!memory.contains(address)) return pinned_touched != nullptr && pinned_touched(address, write, line);
  const std::string does = std::string("host code ") + (write ? "writes" : "reads") + ", at " + line + ", ";
  if (memory.ends_wait(address)) {
    found_mistake(does +
                  "managed memory without having waited for the kernel that was launched before: "
                  "cudaDeviceSynchronize() comes first");
    return true;
  }
  found_mistake(does + "device memory, " + memory.where(address) +
                ", and ends here: the host cannot reach a GPU's memory; "
                "cudaMemcpy() copies it");
  return false;
}

const std::vector<std::string>& mistakes() { return said().mistakes; }
const std::vector<std::string>& notes() { return said().notes; }

}  // namespace simt
