// The functions behind warp.h.
#include "simt/cuda/warp.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "simt/cuda/groups.h"
#include "simt/engine/device_memory.h"
#include "simt/engine/engine.h"

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

}  // namespace

void tile_sync(const char* name, unsigned size, const char* file, int line) {
  if (left_out({file, line})) return;
  Worker& self = this_worker(name);
  const dim3 block = self.block();
  const unsigned first = self.current().number / size * size;
  self.named_barrier({name, {file, line, __builtin_return_address(0)}}, NamedBarrier::of_tile(first, size),
                     int(std::min(size, block.x * block.y * block.z - first)), /*waits=*/true, /*of_tile=*/true);
}

static const void*& place_of_operand(unsigned thread) {
  thread_local std::vector<const void*> operands(
      max_block_threads);  // on the heap: a library that is loaded later has little else
  return operands[thread];
}
void set_tile_operand(const void* of_this_thread) {
  place_of_operand(this_worker("tile").current().number) = of_this_thread;
}
const void* tile_operand(unsigned thread) { return place_of_operand(thread); }

unsigned match(const char* name, unsigned mask, std::uint64_t bits, const char* file, int line) {
  Match match = {bits, 0};
  warp_collective(name, mask, &match, compute_match, file, line);
  return match.lanes;
}

void trap(const char* what, const char* file, int line) {
  Worker& self = this_worker(what);
  self.fail(cudaErrorLaunchFailure, &self.current(), text({file, line, __builtin_return_address(0)}), what);
}

void unsupported(const char* what, const char* file, int line) {
  Worker& self = this_worker(what);
  self.fail(cudaErrorNotSupported, &self.current(), text({file, line, __builtin_return_address(0)}), what);
}

std::uint32_t shared_address(const void* pointer) {
  Worker& self = this_worker("an address in shared memory");
  const std::uint32_t address = self.shared_address(pointer);
  if (address == SharedMemory::no_address)
    self.fail(cudaErrorIllegalAddress, &self.current(), "",
              "the address in shared memory of a pointer that is not to shared memory");
  return address;
}

void* shared_pointer(std::uint32_t address) {
  return this_worker("an address in shared memory").shared_pointer(address);
}

bool is_shared(const void* pointer) { return this_worker("__isShared").shared().contains(pointer); }

bool is_global(const void* pointer) { return DeviceMemory::instance().contains(pointer); }

}  // namespace simt
