// Streams and events: what they are, and whether a program may still use the one that it names.
#pragma once

#include <chrono>

#include "simt/cuda/runtime.h"

// Neither is ever deleted, so that one that was destroyed is no other one later.
struct SimtStream {
  bool blocking = true;  // the default stream and this one wait for each other
};

struct SimtEvent {
  bool timed = true;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  cudaStream_t stream = nullptr;  // in which it was recorded
};

namespace simt {

cudaStream_t make_stream(bool blocking);  // a new one

// cudaSuccess, or the failure of this call: the stream was destroyed, or never made. The default stream is one.
cudaError_t check_stream(const char* call, cudaStream_t stream);
cudaError_t check_event(const char* call, cudaEvent_t event);

void nothing_lives_on();  // of all that a program has allocated, and of these: cudaDeviceReset()

}  // namespace simt
