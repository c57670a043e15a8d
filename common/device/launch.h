// Launching kernels and asking for shared memory. g++ cannot parse `kernel<<<...>>>(...)` nor `extern __shared__`,
// so kernel sources use these two instead; everything else in a kernel is plain CUDA.
#pragma once

#include <initializer_list>
#include <utility>

#include "device/cuda.h"

// Both throw CudaError (device/cuda_error.h). Not in this header, because every kernel's file includes it.
[[noreturn]] void throw_cuda_error(cudaError_t code, const char* file, int line);
[[noreturn]] void throw_not_compiled_for_this_gpu(cudaError_t code, std::initializer_list<int> compiled_for);

// Throws CudaError unless the call succeeded: check(cudaMalloc(&p, bytes)).
inline void check(cudaError_t code, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (code != cudaSuccess) throw_cuda_error(code, file, line);
}

// How many tiles, or thread blocks, of this size cover n.
template <class Count>
__host__ __device__ constexpr Count ceil_div(Count n, int size) {
  return (n + size - 1) / size;
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
  dim3 cluster = {1, 1, 1};  // blocks of a cluster (device/cluster.h)
};

// How the thread blocks of a launch run: each when there is room for it; so, but perhaps before the kernel before it
// has ended (device/dependent_launch.h); or all at the same time (device/cooperative_launch.h).
enum class Blocks { apart, dependent, together };

// What launch(), below, and the functions of these headers do.
template <class... Params, class... Args>
void launch_grid(void (*kernel)(Params...), const LaunchConfig& config, Blocks blocks, Args&&... args) {
#ifdef WORKBOOK_SIMT
  const auto body = [&] { kernel(static_cast<Params>(args)...); };
  const void* const code = reinterpret_cast<const void*>(kernel);
  check(blocks == Blocks::together
            ? simt::launch_cooperative(code, config.grid, config.block, config.shared_bytes, body)
            : simt::launch(code, config.grid, config.block, config.shared_bytes, body, blocks == Blocks::dependent,
                           config.cluster),
        config.file, config.line);
#elif defined(__CUDACC__)
  const auto check_launch = [&](cudaError_t code) {
    if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidDeviceFunction)
      throw_not_compiled_for_this_gpu(code, {__CUDA_ARCH_LIST__});
    check(code, config.file, config.line);
  };
  constexpr size_t without_asking = 48 * 1024;  // CUDA C++ Programming Guide, compute capability 7.x and later
  if (config.shared_bytes > without_asking)
    check_launch(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(config.shared_bytes)));
  cudaFuncAttributes code = {};
  if (blocks == Blocks::dependent) check_launch(cudaFuncGetAttributes(&code, kernel));
  cudaLaunchAttribute how[2] = {};
  unsigned attributes = 0;
  if (blocks == Blocks::together) {
    how[attributes].id = cudaLaunchAttributeCooperative;
    how[attributes++].val.cooperative = 1;
  } else if (blocks == Blocks::dependent && code.ptxVersion >= 90) {  // for older GPUs it is compiled without its wait
    how[attributes].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    how[attributes++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (config.cluster.x * config.cluster.y * config.cluster.z > 1) {
    how[attributes].id = cudaLaunchAttributeClusterDimension;
    how[attributes++].val.clusterDim = {config.cluster.x, config.cluster.y, config.cluster.z};
  }
  if (attributes > 0) {
    const cudaLaunchConfig_t grid = {config.grid, config.block, config.shared_bytes, config.stream, how, attributes};
    cudaLaunchKernelEx(&grid, kernel, std::forward<Args>(args)...);
  } else {
    // clang-format takes a header for C++, which has no >>>.
    // clang-format off
    kernel<<<config.grid, config.block, config.shared_bytes, config.stream>>>(std::forward<Args>(args)...);
    // clang-format on
  }
  check_launch(cudaGetLastError());
#else
  static_assert(sizeof...(Params) == size_t(-1), "launch() is for files that nvcc compiles");
#endif
}

// launch(kernel, {grid, block, shared_bytes, stream}, args...): throws CudaError if the launch is refused.
// With the CUDA toolkit the kernel runs asynchronously; the SIMT engine has finished it on return.
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const LaunchConfig& config, Args&&... args) {
  launch_grid(kernel, config, Blocks::apart, std::forward<Args>(args)...);
}

#if defined(WORKBOOK_SIMT) || defined(__CUDACC__)
// The dynamic shared memory of this thread block. A file says one alignment for all its kernels. (On the engine it
// begins at a multiple of any, as PTX counts addresses.)
template <class T, int alignment = 128>
__device__ T* dynamic_shared() {
#ifdef WORKBOOK_SIMT
  return static_cast<T*>(simt::dynamic_shared_memory());
#else
  extern __shared__ __align__(alignment) unsigned char dynamic_shared_bytes[];
  return reinterpret_cast<T*>(dynamic_shared_bytes);
#endif
}
#endif
