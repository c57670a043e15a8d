#include "simt/cuda/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace simt {

namespace {

constexpr std::size_t no_number = std::numeric_limits<std::size_t>::max();

// A number in a file of the system, behind its key if there is one; no_number if it is not there or says "max".
std::size_t number_in(const std::string& path, const std::string& key = "") {
  std::ifstream file(path);
  std::string word;
  std::size_t number;
  if (!key.empty())
    while (file >> word && word != key) {
    }
  return file >> number ? number : no_number;
}

// What the group may still take.
std::size_t free_in(std::size_t limit, const std::string& usage, const std::string& statistics) {
  std::size_t used = number_in(usage);
  if (used == no_number) return limit;
  for (const char* cached : {"inactive_file", "active_file"})
    if (const std::size_t bytes = number_in(statistics, cached); bytes != no_number) used -= std::min(used, bytes);
  return limit - std::min(limit, used);
}

}  // namespace

HostMemory host_memory(const std::string& root) {
  const std::size_t physical = std::size_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const std::size_t available = number_in(root + "/proc/meminfo", "MemAvailable:");
  HostMemory memory = {available < physical / 1024 ? available * 1024 : physical, physical};
  std::string group = root + "/sys/fs/cgroup/", usage = "memory.current";
  std::size_t limit = number_in(group + "memory.max");
  if (limit == no_number) {  // version 1 of control groups
    group += "memory/", usage = "memory.usage_in_bytes";
    limit = number_in(group + "memory.limit_in_bytes");
  }
  if (limit < physical) memory = {std::min(memory.free, free_in(limit, group + usage, group + "memory.stat")), limit};
  return memory;
}

}  // namespace simt
