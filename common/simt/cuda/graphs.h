// Streams whose work is captured: for the functions that put work on streams.
#pragma once

#include <functional>

#include "simt/cuda/runtime.h"

namespace simt {

bool is_captured(cudaStream_t stream);
// The work becomes a node of the stream's graph, after all that the stream has there; cudaSuccess.
cudaError_t capture(cudaStream_t stream, std::function<cudaError_t()> work);
// An event that is recorded in a captured stream has those streams captured that wait for it.
void recorded_in_capture(cudaEvent_t event, cudaStream_t stream);
void waits_in_capture(cudaStream_t stream, cudaEvent_t event);

}  // namespace simt
