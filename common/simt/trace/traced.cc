// What traced kernels tell observers besides their loads and stores.
#define SIMT_TRACED  // whose names these are
#include <cstdlib>

#include "simt/cuda/thread.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"
#include "simt/front/report.h"

// What g++ has code call at an index that is beyond its dimension: of -fsanitize=bounds-strict, whose own library is
// not here.
extern "C" [[noreturn]] void __ubsan_handle_out_of_bounds_abort(const void*, std::size_t) {
  if (simt::worker == nullptr || !simt::worker->in_kernel()) std::abort();
  simt::worker->fail(
      cudaErrorIllegalAddress, &simt::worker->current(), simt::line_of(__builtin_return_address(0)),
      "out of bounds: an index is beyond its dimension (all of an array can be reached from a pointer to "
      "its first element)");
}

// A text that a kernel prints, byte by byte.
void simt::text_read(const char* text) {
  if (worker == nullptr || !worker->in_kernel()) return;
  do worker->tell_of_access(__builtin_return_address(0), text, 1, Access::read);
  while (*text++ != 0);
}

namespace simt::traced {

void ldmatrix_row(const void* row) { this_worker("ldmatrix").tell_of_ldmatrix_row(__builtin_return_address(0), row); }

void read_only(const void* from, std::size_t bytes) {
  if (worker == nullptr || !worker->in_kernel() || worker->computing()) return;
  worker->observe(&Observer::read_only, worker->memory_access(__builtin_return_address(0), from, bytes, Access::read));
}

namespace {
void registers(const void* pc, const void* first, int count, Access access) {
  Worker& self = this_worker("a collective");
  const auto begin = reinterpret_cast<std::uintptr_t>(first), end = begin + 4 * static_cast<std::uintptr_t>(count);
  if (self.in_kernels_frames(begin) && self.in_kernels_frames(end - 1)) return;
  for (std::uintptr_t at = begin; at < end; at += 4) self.tell_of_access(pc, reinterpret_cast<void*>(at), 4, access);
}
}  // namespace

void registers_read(const void* first, int count) {
  registers(__builtin_return_address(0), first, count, Access::read);
}
void registers_written(const void* first, int count) {
  registers(__builtin_return_address(0), first, count, Access::write);
}

void note_update(const void* pc, const void* p, std::size_t bytes) {
  if (worker != nullptr && worker->in_kernel()) worker->tell_of_whole_access(pc, p, bytes, Access::atomic);
}

void atomics_are_of_block(bool are) {
  if (worker != nullptr && worker->in_kernel()) worker->atomics_are_of_block(are);
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
