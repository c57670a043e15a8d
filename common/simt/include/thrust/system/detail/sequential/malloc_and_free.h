// thrust::device_malloc(), and what algorithms need for themselves: device memory, and in a kernel its heap.
#pragma once

#include <thrust/detail/raw_pointer_cast.h>
#include <thrust/system/detail/sequential/execution_policy.h>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace detail {
namespace sequential {

template <class Policy>
void* malloc(execution_policy<Policy>&, std::size_t bytes) {
  return simt::allocate_for_thrust(bytes);
}
template <class Policy, class Pointer>
void free(execution_policy<Policy>&, Pointer pointer) {
  simt::free_for_thrust(thrust::raw_pointer_cast(pointer));
}

}  // namespace sequential
}  // namespace detail
}  // namespace system
THRUST_NAMESPACE_END
