#include "simt/copy.h"

#include <cstring>
#include <numeric>
#include <string>

#include "simt/engine.h"

namespace simt {

void PendingCopies::start(const Copy& copy, Recorder& recorder) {
  copies_.push_back(copy);
  recorder.copy_starts(copy, *this);
}

void PendingCopies::land(std::size_t count, Recorder& recorder) {
  const auto last = copies_.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto copy = copies_.begin(); copy != last; ++copy) {
    recorder.copy_lands(*copy, *this);
    std::memcpy(copy->shared, copy->global, copy->source_bytes);
    std::memset(static_cast<char*>(copy->shared) + copy->source_bytes, 0, copy->bytes - copy->source_bytes);
  }
  copies_.erase(copies_.begin(), last);
}

void Groups::commit(std::size_t started) {
  sizes_.push_back(started - in_groups_);
  in_groups_ = started;
}

std::size_t Groups::finish(int pending_groups) {
  if (sizes_.size() <= static_cast<std::size_t>(pending_groups)) return 0;
  const auto last = sizes_.end() - pending_groups;
  const std::size_t finished = std::accumulate(sizes_.begin(), last, std::size_t(0));
  sizes_.erase(sizes_.begin(), last);
  in_groups_ -= finished;
  return finished;
}

void Groups::forget() {
  sizes_.clear();
  in_groups_ = 0;
}

void CopyGroups::forget() {
  copies_.forget();
  groups_.forget();
}

void start_cp_async(Worker& self, const void* pc, void* shared, const void* global, std::size_t bytes,
                    std::size_t source_bytes) {
  void* stack[] = {static_cast<char*>(const_cast<void*>(pc)) - 1};
  if ((bytes != 4 && bytes != 8 && bytes != 16) || source_bytes > bytes)
    self.fail(cudaErrorLaunchFailure, &self.current(), source_line(stack),
              "cp.async of " + std::to_string(bytes) + " bytes, " + std::to_string(source_bytes) +
                  " of them from memory: must be 4, 8 or 16, and no more from memory than that");
  if (reinterpret_cast<std::uintptr_t>(shared) % bytes != 0 || reinterpret_cast<std::uintptr_t>(global) % bytes != 0)
    self.fail(cudaErrorMisalignedAddress, &self.current(), source_line(stack),
              "cp.async of " + std::to_string(bytes) + " bytes: an address is not a multiple of that");
  self.copies().start(
      {shared, global, static_cast<unsigned>(bytes), static_cast<unsigned>(source_bytes), self.current().number, pc},
      self.recorder());
}

void cp_async(void* shared, const void* global, std::size_t bytes, std::size_t source_bytes) {
  start_cp_async(this_worker("cp.async"), __builtin_return_address(0), shared, global, bytes, source_bytes);
}

void cp_async_commit() { this_worker("cp.async").copies().commit(); }

void cp_async_wait(int pending_groups, const char* file, int line) {
  if (left_out({file, line})) return;
  Worker& self = this_worker("cp.async");
  self.copies().wait(pending_groups, self.recorder());
}

}  // namespace simt
