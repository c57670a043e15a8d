// What traced kernels tell observers besides their loads and stores.
#define SIMT_TRACED  // whose names these are
#include "simt/cuda/thread.h"
#include "simt/engine/engine.h"

namespace simt::traced {

void ldmatrix_row(const void* row) { this_worker("ldmatrix").tell_of_ldmatrix_row(__builtin_return_address(0), row); }

void note_update(const void* pc, const void* p, std::size_t bytes) {
  if (worker != nullptr && worker->in_kernel()) worker->tell_of_access(pc, p, bytes, Access::atomic);
}

void watch(const char* name, std::int64_t row, std::int64_t column, float value, bool is_share) {
  this_worker("watch").observe(&Observer::watched,
                               WatchedValue{__builtin_return_address(0), name, row, column, value, is_share});
}

void watch_step(const char* name) {
  this_worker("watch_step").observe(&Observer::step_named, NamedStep{__builtin_return_address(0), name});
}

float peek(const float* from) { return *from; }

}  // namespace simt::traced
