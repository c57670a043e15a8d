// The functions behind warp.h.
#include "simt/warp.h"

#include <array>
#include <string>

#include "simt/engine.h"
#include "simt/memory.h"

namespace simt {
namespace {

struct Match {
  std::uint64_t bits;
  unsigned lanes;
};

void compute_match(void* const operands[32], unsigned mask) {
  for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
    auto& own = *static_cast<Match*>(operands[std::countr_zero(rest)]);
    for (unsigned others = mask; others != 0; others &= others - 1) {
      const int lane = std::countr_zero(others);
      own.lanes |= unsigned(static_cast<const Match*>(operands[lane])->bits == own.bits) << lane;
    }
  }
}

// Static shared memory has addresses from here on, in the order of its thread-local block; below is the dynamic part.
constexpr std::uint32_t static_base = 1 << 24;
constexpr std::uintptr_t address_alignment = 1024;

// The multiple of 1024 from which the thread-local block of the kernel's module is counted.
char* static_begin(const Worker& self) {
  const Module* module = self.launch().module;
  if (module == nullptr || module->tls_module == 0) return nullptr;
  const auto block = reinterpret_cast<std::uintptr_t>(module->thread_local_block());
  return reinterpret_cast<char*>(block / address_alignment * address_alignment);
}

}  // namespace

unsigned match(const char* name, unsigned mask, std::uint64_t bits, const char* file, int line) {
  Match match = {bits, 0};
  warp_collective(name, mask, &match, compute_match, file, line);
  return match.lanes;
}

void trap(const char* what, const char* file, int line) {
  Worker& self = this_worker(what);
  self.fail(cudaErrorLaunchFailure, &self.current(), text({file, line, __builtin_return_address(0)}), what);
}

std::uint32_t shared_address(const void* pointer) {
  Worker& self = this_worker("an address of shared memory");
  const auto* p = static_cast<const char*>(pointer);
  if (const auto dynamic = static_cast<std::uintptr_t>(p - self.shared().pages()); dynamic < static_base)
    return static_cast<std::uint32_t>(dynamic);
  const auto in_static = static_cast<std::uintptr_t>(p - static_begin(self));
  if (in_static >= static_base)
    self.fail(cudaErrorIllegalAddress, &self.current(), "",
              "the address in shared memory of a pointer that is not to shared memory");
  return static_base + static_cast<std::uint32_t>(in_static);
}

void* shared_pointer(std::uint32_t address) {
  const Worker& self = this_worker("an address of shared memory");
  return address < static_base ? self.shared().pages() + address : static_begin(self) + (address - static_base);
}

bool is_shared(const void* pointer) { return this_worker("__isShared").shared().contains(pointer); }

bool is_global(const void* pointer) { return DeviceMemory::instance().contains(pointer); }

}  // namespace simt
