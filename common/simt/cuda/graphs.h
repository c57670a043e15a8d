// Streams whose work is captured: for the functions that put work on streams.
#pragma once

#include <functional>

#include "simt/cuda/runtime.h"

namespace simt {

bool is_captured(cudaStream_t stream);
// The work becomes a node of the stream's graph, after all that the stream has there. It is told in which stream it
// then runs: one of the graph's own.
cudaError_t capture(cudaStream_t stream, std::function<cudaError_t(cudaStream_t)> work);
// An event that is recorded in a captured stream has those streams captured that wait for it.
void recorded_in_capture(cudaEvent_t event, cudaStream_t stream);
void waits_in_capture(cudaStream_t stream, cudaEvent_t event);

// What a capture forbids: cudaSuccess, or the failure of this call, which has then spoilt the capture.
cudaError_t unsafe_in_capture(const char* call);  // unless it is a relaxed one, or of another thread's own
cudaError_t waits_in_capture(const char* call);   // for everything
cudaError_t waits_in_capture(const char* call, cudaStream_t stream);
cudaError_t waits_in_capture(const char* call, cudaEvent_t event);
// Work for the default stream, which waits for captured ones; `waited_for`: and the call waits for it.
cudaError_t comes_into_capture(const char* call, cudaStream_t stream, bool waited_for = false);

// Work for a stream: whether there still is one, and a capture allows it.
cudaError_t comes_into_stream(const char* call, cudaStream_t stream);

}  // namespace simt
