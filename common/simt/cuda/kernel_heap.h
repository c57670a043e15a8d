// malloc, free, new and delete of device code, as simt-compile (front/rewrite.h) has them. Functions of both sides use
// them on the host, too, where they are the host's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace simt {

void* kernel_malloc(std::size_t bytes);
void kernel_free(const volatile void* pointer);

struct KernelNew {};
inline constexpr KernelNew kernel_new;

// delete p is kernel_delete % p, and delete[] p is kernel_delete_array % p: an operator that takes all that delete
// does.
struct KernelDelete {
  template <class T>
  friend void operator%(KernelDelete, T* pointer) {
    if (pointer == nullptr) return;
    if constexpr (
        requires { T::operator delete(static_cast<void*>(nullptr)); } ||
        requires { T::operator delete(static_cast<void*>(nullptr), std::size_t()); })
      return delete pointer;  // its class's own way
    const volatile void* block = pointer;
    if constexpr (std::is_polymorphic_v<T>) block = dynamic_cast<const volatile void*>(pointer);
    if constexpr (!std::is_void_v<T>) pointer->~T();
    kernel_free(block);
  }
};
struct KernelDeleteArray {
  template <class T>
  friend void operator%(KernelDeleteArray, T* pointer) {
    if (pointer == nullptr) return;
    if constexpr (
        requires { T::operator delete[](static_cast<void*>(nullptr)); } ||
        requires { T::operator delete[](static_cast<void*>(nullptr), std::size_t()); })
      return delete[] pointer;
    if constexpr (std::is_void_v<T> || std::is_trivially_destructible_v<T>) {
      kernel_free(pointer);
    } else {  // the number of elements lies before them
      for (auto n = reinterpret_cast<const std::size_t*>(pointer)[-1]; n-- > 0;) pointer[n].~T();
      kernel_free(reinterpret_cast<const volatile char*>(pointer) - std::max(sizeof(std::size_t), alignof(T)));
    }
  }
};
inline constexpr KernelDelete kernel_delete;
inline constexpr KernelDeleteArray kernel_delete_array;

}  // namespace simt

inline void* operator new(std::size_t bytes, simt::KernelNew) noexcept { return simt::kernel_malloc(bytes); }
inline void* operator new[](std::size_t bytes, simt::KernelNew) noexcept { return simt::kernel_malloc(bytes); }
