#include "simt/hopper/bulk_copy.h"

#include <atomic>
#include <cstring>

#include "simt/engine/engine.h"

namespace simt {

const char* BulkCopy::name() const {
  if (kind == add) return "cp.reduce.async.bulk";
  return of_a_tensor ? "cp.async.bulk.tensor" : "cp.async.bulk";
}

std::uintptr_t BulkCopy::address_in_shared() const { return block->shared().address_of(shared); }

void BulkCopy::carry_out() const {
  for_each_piece([&](char* place, char* there, int size) {
    char* const here = block->shared().now(place);
    if (kind == remote) std::memcpy(here, block->cluster()[rank]->shared().now(there), static_cast<std::size_t>(size));
    if (kind == load && there == nullptr) std::memset(here, 0, static_cast<std::size_t>(size));
    if (there == nullptr) return;
    if (kind == load) std::memcpy(here, there, static_cast<std::size_t>(size));
    if (kind == store) std::memcpy(there, here, static_cast<std::size_t>(size));
    if (kind == add)
      for (int i = 0; i < size; i += 4) {
        float x;
        std::memcpy(&x, here + i, sizeof x);
        std::atomic_ref<float>(*reinterpret_cast<float*>(there + i)).fetch_add(x, std::memory_order_relaxed);
      }
  });
}

std::vector<BulkCopy> BulkGroups::finish(int pending_groups) {
  const auto last = copies_.begin() + static_cast<std::ptrdiff_t>(groups_.finish(pending_groups));
  const std::vector<BulkCopy> finished(copies_.begin(), last);
  copies_.erase(copies_.begin(), last);
  return finished;
}

}  // namespace simt
