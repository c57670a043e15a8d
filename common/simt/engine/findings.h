// What is wrong with a program from elsewhere although it goes on: each is printed when it is found, and reported at
// the end (front/report.h). A mistake that ends a launch is no finding but an error (error.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace simt {

// Whether this program is searched for such things: one that ./workbook or a command like it runs.
bool watching();
void watch_program();

void found_mistake(const std::string& message);
void noted(const std::string& message);  // no mistake, but worth to know: a leak, several stores of the same value

// What failed and is asked for by cudaGetLastError() later has been looked at after all.
void looked_at_last_error();
void failed();  // a call of the runtime has
std::vector<std::string> failures_nobody_looked_at();

// Host code has touched memory that it may not, on the given line. Whether it can go on: else the process ends.
using HostTouches = bool (*)(const void* address, bool write, const std::string& line);
void when_host_touches(HostTouches pinned);
// What uses managed memory there: "the kernel that ..", empty if nothing does.
void when_host_touches_managed(std::string (*user)(const void* address, bool write));
bool host_touches(const void* address, bool write, const std::string& line);

// Addresses of the host's memory, from the first to the last, of which the device may still use some: host code that
// tells of its accesses says so there. `is_flag`: by a volatile access, or an atomic function.
struct AwaitedRange {
  std::uintptr_t begin = 0, end = 0;
};
extern AwaitedRange awaited;
void host_touches_awaited(const void* pc, const void* address, bool write, bool is_flag);

// Host code, at this address in it, has touched what may be a device variable, by its name; and a kernel uses one. That
// both do is a mistake. (Where they tell of their accesses.)
void host_touches_variable(const void* pc, const void* address, bool write);
void kernel_uses(const class DeviceVariable& variable);
// What is computed before belongs to variables: to the device's, perhaps. In a thread other than that of main(), only
// once main() has asked.
bool main_has_begun();

const std::vector<std::string>& mistakes();
const std::vector<std::string>& notes();

}  // namespace simt
