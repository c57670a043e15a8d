// Calls that copy or set memory. Each of them, whatever its name and the shape of what it moves, is work of a stream.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "simt/cuda/runtime.h"

struct cudaMemcpy3DParms;

namespace simt {

struct Transfer {
  Transfer(const char* call, cudaStream_t stream, bool waits = false);

  const char* call;
  cudaStream_t stream;
  bool waits;                         // when the call returns, it is done
  std::function<std::string()> what;  // "the cudaMemcpyAsync at mine.cu:7"
};

// Rows of so many bytes, a pitch apart.
struct Rows {
  const void* begin;
  std::size_t width, pitch, rows;
};
bool overlap(const Rows& a, const Rows& b);

// A piece of what the call moves.
cudaError_t copy(const Transfer& transfer, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t set(const Transfer& transfer, void* to, int value, std::size_t bytes);
// Rows, which lie a pitch apart.
cudaError_t copy_rows(const Transfer& transfer, void* to, std::size_t to_pitch, const void* from,
                      std::size_t from_pitch, std::size_t width, std::size_t height, cudaMemcpyKind kind);
cudaError_t set_rows(const Transfer& transfer, void* to, std::size_t pitch, int value, std::size_t width,
                     std::size_t height);
// Those of a box.
cudaError_t copy_slices(const Transfer& transfer, const cudaMemcpy3DParms& copy);

}  // namespace simt
