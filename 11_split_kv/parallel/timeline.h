// What happens on which stream, and when: CUDA events around each piece of work.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "harness/device_buffer.h"

namespace split_kv::parallel {

class Timeline {
 public:
  explicit Timeline(cudaStream_t stream) { start_.record(stream); }

  // Returns which one it is, for end().
  size_t begin(const char* lane, std::string what, double bytes, cudaStream_t stream) {
    spans_.push_back({lane, std::move(what), bytes});
    events_.emplace_back().record(stream);
    events_.emplace_back();
    return spans_.size() - 1;
  }
  void end(size_t which, cudaStream_t stream) { events_[2 * which + 1].record(stream); }

  struct Span {
    std::string lane, what;
    double bytes;
    double begin_ms = 0, end_ms = 0;
  };
  // Once all of it is over.
  std::vector<Span> spans() const {
    std::vector<Span> spans = spans_;
    for (size_t i = 0; i < spans.size(); i++) {
      spans[i].begin_ms = events_[2 * i].milliseconds_since(start_);
      spans[i].end_ms = events_[2 * i + 1].milliseconds_since(start_);
    }
    return spans;
  }

 private:
  harness::Event start_;
  std::vector<Span> spans_;
  std::deque<harness::Event> events_;
};

}  // namespace split_kv::parallel
