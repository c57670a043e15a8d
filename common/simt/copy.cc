#include "simt/copy.h"

#include <cstring>
#include <numeric>

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

void CopyGroups::commit() {
  groups_.push_back(copies_.size() - in_groups_);
  in_groups_ = copies_.size();
}

void CopyGroups::wait(int pending_groups, Recorder& recorder) {
  const auto pending = static_cast<std::size_t>(pending_groups);
  if (groups_.size() <= pending) return;
  const auto last = groups_.end() - pending_groups;
  const std::size_t landing = std::accumulate(groups_.begin(), last, std::size_t(0));
  copies_.land(landing, recorder);
  groups_.erase(groups_.begin(), last);
  in_groups_ -= landing;
}

void CopyGroups::forget() {
  copies_.forget();
  groups_.clear();
  in_groups_ = 0;
}

}  // namespace simt
