// kernel<<<grid, block, shared_bytes, stream>>>(arguments) in a program from elsewhere.
#pragma once

#include "simt/cuda/runtime.h"
#include "simt/engine/launch.h"

namespace simt {

struct LaunchConfig {
  LaunchConfig(dim3 grid, dim3 block, std::size_t shared_bytes = 0, cudaStream_t stream = nullptr)
      : grid(grid), block(block), shared_bytes(shared_bytes), stream(stream) {}

  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};

// Launches. What fails is printed on stderr, because such programs seldom ask. As with CUDA, cudaGetLastError() gives
// the code; and after a mistake in a kernel, so does every call from then on.
void launch_by_syntax(const LaunchConfig& config, const void* kernel, const Body& body);

// The same of a launch by a function of the runtime; the code is what that returns. `cooperative`: see
// launch_cooperative().
cudaError_t launch_as_cuda(const LaunchConfig& config, const void* kernel, const Body& body, bool cooperative = false);

// Of a kernel: as much dynamic shared memory as cudaFuncSetAttribute allows it. Without that, a block has 48 KB.
void opt_in(const void* kernel, std::size_t bytes);

}  // namespace simt
