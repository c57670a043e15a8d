// Beside the policies of the host's system, thrust::cuda::par: its loops as well, after what the stream was asked to
// do.
#pragma once

#include <cuda_runtime.h>
#include_next <thrust/system/cpp/execution_policy.h>

#include <stdexcept>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cuda {

struct par_t : cpp::detail::execution_policy<par_t>,
               thrust::detail::allocator_aware_execution_policy<cpp::detail::execution_policy> {
  par_t on(cudaStream_t stream) const {
    if (cudaStreamSynchronize(stream) != cudaSuccess)
      throw std::runtime_error("thrust::cuda::par.on(): the stream has failed, or is captured for a graph");
    return *this;
  }
};
inline constexpr par_t par{}, par_nosync{};

}  // namespace cuda
}  // namespace system

namespace cuda {
using system::cuda::par;
using system::cuda::par_nosync;
}  // namespace cuda
namespace cuda_cub {
using system::cuda::par;
using system::cuda::par_nosync;
}  // namespace cuda_cub
THRUST_NAMESPACE_END
