// The streams of a rank: some compute, one exchanges.
#pragma once

#include <algorithm>

#include "device/streams.h"
#include "harness/device_buffer.h"

namespace split_kv::parallel {

class Stream {
 public:
  // Whose blocks get a multiprocessor where several streams want it. The exchange goes first: its few blocks take
  // little, and the other rank waits for them.
  enum class Urgency { last, usual, first };
  explicit Stream(Urgency urgency) {
    int least = 0, most = 0;  // the more urgent, the smaller the number
    check(cudaDeviceGetStreamPriorityRange(&least, &most));
    const int usual = std::max(least - 1, most);
    const int priority = urgency == Urgency::last ? least : urgency == Urgency::usual ? usual : most;
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority));
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    cudaEventDestroy(event_);
    cudaStreamDestroy(stream_);
  }
  operator cudaStream_t() const { return stream_; }

  // What comes on this stream from now on waits for what is on the other one by now.
  void wait_for(const Stream& other) {
    check(cudaEventRecord(other.event_, other.stream_));
    check(cudaStreamWaitEvent(stream_, other.event_, 0));
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

}  // namespace split_kv::parallel
