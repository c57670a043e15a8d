#include "simt/engine/copy.h"

#include <cstring>
#include <numeric>
#include <string>

#include "simt/engine/engine.h"

namespace simt {

void PendingCopies::start(const Copy& copy, Worker& worker) {
  copies_.push_back(copy);
  worker.observe(&Observer::copy_starts, copy, *this);
}

void PendingCopies::land(std::size_t count, Worker& worker) {
  const auto last = copies_.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto copy = copies_.begin(); copy != last; ++copy) {
    worker.observe(&Observer::copy_lands, *copy, *this);
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

}  // namespace simt
