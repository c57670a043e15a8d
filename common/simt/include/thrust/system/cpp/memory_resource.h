// Where device_vector and universal_vector have their elements: in the engine's device memory.
#pragma once

#include <thrust/detail/config.h>
#include <thrust/mr/fancy_pointer_resource.h>
#include <thrust/mr/memory_resource.h>
#include <thrust/system/cpp/pointer.h>

#include <new>

#include "simt/cuda/thrust.h"

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cpp {
namespace detail {

class device_memory final : public thrust::mr::memory_resource<> {
 public:
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* const memory = simt::allocate_for_thrust(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  void do_deallocate(void* memory, std::size_t, std::size_t) override { simt::free_for_thrust(memory); }
};

}  // namespace detail

using memory_resource = thrust::mr::fancy_pointer_resource<detail::device_memory, thrust::cpp::pointer<void>>;
using universal_memory_resource =
    thrust::mr::fancy_pointer_resource<detail::device_memory, thrust::cpp::universal_pointer<void>>;
using universal_host_pinned_memory_resource = universal_memory_resource;

}  // namespace cpp
}  // namespace system
THRUST_NAMESPACE_END
