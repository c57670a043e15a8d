#include "simt/engine/host_ranges.h"

#include <link.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace simt {
namespace {

struct Range {
  std::uintptr_t begin, end;
  const char* kind;
};

// Thread-local variables of this thread lie below its control block.
bool is_thread_local(std::uintptr_t address) {
  static const std::size_t bytes = [] {
    std::size_t all = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* sum) {
          for (int i = 0; i < info->dlpi_phnum; ++i)
            if (info->dlpi_phdr[i].p_type == PT_TLS)
              *static_cast<std::size_t*>(sum) += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
          return 0;
        },
        &all);
    return all + 4096;
  }();
  const auto control = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  return address + bytes >= control && address < control + 4096;
}

// A program's variables seem to have no name in the table of addresses where they are zero at first.
int add_module(dl_phdr_info* info, std::size_t, void* to) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    static_cast<std::vector<Range>*>(to)->push_back({begin, begin + part.p_memsz, nullptr});
  }
  return 0;
}

std::vector<Range> read_ranges() {
  std::vector<Range> ranges;  // the first that an address is in counts
  dl_iterate_phdr(add_module, &ranges);
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    std::istringstream words(line);
    std::string span, rights, offset, device, inode, name;
    words >> span >> rights >> offset >> device >> inode >> name;
    if (!rights.starts_with("rw")) continue;
    const std::size_t dash = span.find('-');
    const Range range = {std::stoull(span.substr(0, dash), nullptr, 16),
                         std::stoull(span.substr(dash + 1), nullptr, 16),
                         name == "[heap]"               ? "its heap"
                         : name == "[stack]"            ? "its stack"
                         : name.empty() && inode == "0" ? "its heap"
                                                        : nullptr};
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace

const char* host_memory_at(std::uintptr_t address) {
  if (is_thread_local(address)) return nullptr;
  static std::vector<Range>& ranges = *new std::vector<Range>;
  const auto find = [&] {
    return std::find_if(ranges.begin(), ranges.end(),
                        [&](const Range& r) { return r.begin <= address && address < r.end; });
  };
  auto found = find();
  if (found == ranges.end()) {
    ranges = read_ranges();
    found = find();
  }
  return found == ranges.end() ? nullptr : found->kind;
}

}  // namespace simt
