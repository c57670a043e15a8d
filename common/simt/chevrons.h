// kernel<<<grid, block, shared_bytes, stream>>>(..), whose failures most programs never ask for: they are printed.
#pragma once

#include <cstdio>

#include "simt/launch.h"
#include "simt/report.h"
#include "simt/thread.h"

namespace simt {

struct Chevrons {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

inline void chevrons(const Chevrons& c, const void* kernel, const char* file, int line, const Body& body) {
  if (launch(kernel, c.grid, c.block, c.shared_bytes, body) == cudaSuccess) return;
  const char* message = cudaGetErrorString(cudaPeekAtLastError());
  std::fprintf(stderr, "%s:%d: %s\n", file, line, message);
  note_failed_launch(message);
}

// A variable of the device, which the engine is told of.
struct DeviceVariable {
  enum Kind { device, constant, managed };
  template <class T>
  DeviceVariable(T&, Kind) {}
};

}  // namespace simt
