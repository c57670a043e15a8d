// Launching kernels and asking for shared memory. g++ cannot parse `kernel<<<...>>>(...)` nor `extern __shared__`,
// so kernel sources use these two instead; everything else in a kernel is plain CUDA.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "device/cuda.h"

// A CUDA call or launch that failed. what() says which, where, and what the runtime said.
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const std::string& what) : std::runtime_error(what), code_(code) {}
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

// Throws CudaError unless the call succeeded: check(cudaMalloc(&p, bytes)).
inline void check(cudaError_t code, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (code == cudaSuccess) return;
  throw CudaError(code, std::string(file) + ":" + std::to_string(line) + ": " + cudaGetErrorName(code) + ": " +
                            cudaGetErrorString(code));
}

// The part of <<<grid, block, shared_bytes, stream>>>, and the source line of the launch.
struct LaunchConfig {
  LaunchConfig(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr,
               const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : grid(grid), block(block), shared_bytes(shared_bytes), stream(stream), file(file), line(line) {}

  dim3 grid;
  dim3 block;
  size_t shared_bytes;  // dynamic shared memory per thread block; above 48 KB the limit is raised for the kernel
  cudaStream_t stream;
  const char* file;
  int line;
};

// launch(kernel, {grid, block, shared_bytes, stream}, args...): throws CudaError if the launch is refused.
// With the CUDA toolkit the kernel runs asynchronously; the SIMT engine has finished it on return.
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const LaunchConfig& config, Args&&... args) {
#ifdef WORKBOOK_SIMT
  check(simt::launch(reinterpret_cast<const void*>(kernel), config.grid, config.block, config.shared_bytes,
                     [&] { kernel(static_cast<Params>(args)...); }),
        config.file, config.line);
#elif defined(__CUDACC__)
  constexpr size_t without_asking = 48 * 1024;  // CUDA C++ Programming Guide, compute capability 7.x and later
  if (config.shared_bytes > without_asking)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(config.shared_bytes)),
          config.file, config.line);
  kernel<<<config.grid, config.block, config.shared_bytes, config.stream>>>(std::forward<Args>(args)...);
  check(cudaGetLastError(), config.file, config.line);
#else
  static_assert(sizeof...(Params) == size_t(-1), "launch() is for files that nvcc compiles");
#endif
}

#if defined(WORKBOOK_SIMT) || defined(__CUDACC__)
// The dynamic shared memory of this thread block, aligned to 128 bytes.
template <class T>
__device__ T* dynamic_shared() {
#ifdef WORKBOOK_SIMT
  return static_cast<T*>(simt::dynamic_shared_memory());
#else
  extern __shared__ __align__(128) unsigned char dynamic_shared_bytes[];
  return reinterpret_cast<T*>(dynamic_shared_bytes);
#endif
}
#endif
