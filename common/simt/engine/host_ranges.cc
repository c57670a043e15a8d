#include "simt/engine/host_ranges.h"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "simt/engine/diagnosis.h"
#include "simt/engine/modules.h"
#include "simt/engine/types.h"

namespace simt {
namespace {

struct Range {
  std::uintptr_t begin, end;
  const char* kind;
};

// Thread-local variables of this thread lie below its control block; those of a library that was loaded late,
// elsewhere.
bool is_below_control_block(std::uintptr_t address) {
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

bool is_of_a_late_library(std::uintptr_t address) {
  const auto lies_in = [](dl_phdr_info* info, std::size_t, void* wanted) {
    const auto place = *static_cast<std::uintptr_t*>(wanted) - reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data);
    for (int i = 0; i < info->dlpi_phnum; ++i)
      if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data != nullptr && place < info->dlpi_phdr[i].p_memsz)
        return 1;
    return 0;
  };
  return dl_iterate_phdr(lies_in, &address) != 0;
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
  if (is_below_control_block(address)) return nullptr;
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
  return found == ranges.end() || found->kind == nullptr || is_of_a_late_library(address) ? nullptr : found->kind;
}

namespace {

struct Taken {
  const void* function;
  Site by;
};
struct TakenAddresses {
  static constexpr std::size_t bytes = 1 << 20, of_each = 16;
  std::mutex mutex;
  const char* begin = nullptr;
  std::vector<Taken> all;

  static TakenAddresses& instance() {
    static TakenAddresses& addresses = *new TakenAddresses;
    return addresses;
  }
};

}  // namespace

const void* address_in_host_code(const void* function, const char* file, int line) {
  TakenAddresses& addresses = TakenAddresses::instance();
  const std::lock_guard lock(addresses.mutex);
  if (addresses.begin == nullptr) {
    void* const memory =
        mmap(nullptr, TakenAddresses::bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return function;
    addresses.begin = static_cast<const char*>(memory);
  }
  auto& all = addresses.all;
  const auto known = std::find_if(all.begin(), all.end(), [&](const Taken& t) { return t.function == function; });
  const std::size_t number = static_cast<std::size_t>(known - all.begin());
  if (known == all.end()) {
    if ((number + 1) * TakenAddresses::of_each > TakenAddresses::bytes) return function;
    all.push_back({function, {file, line}});
  }
  return addresses.begin + number * TakenAddresses::of_each;
}

std::string function_in_host_code(const void* address) {
  TakenAddresses& addresses = TakenAddresses::instance();
  const std::lock_guard lock(addresses.mutex);
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(address) - addresses.begin);
  if (addresses.begin == nullptr || offset / TakenAddresses::of_each >= addresses.all.size()) return "";
  const Taken& taken = addresses.all[offset / TakenAddresses::of_each];
  return taken_by_the_host(kernel_name(taken.function), taken.by);
}

std::string taken_by_the_host(const std::string& function, const Site& by) {
  return function + ", whose address host code has taken at " + text(by) +
         ": on a GPU that is no address of the device's. Take it in device code, as the initial value of a __device__ "
         "variable, and copy that (cudaMemcpyFromSymbol)";
}

}  // namespace simt
