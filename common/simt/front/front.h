// What simt-compile (front/rewrite.h) makes of CUDA's own syntax. It is included before the first line of every such
// file.
#pragma once

// What nvcc includes by itself, and files rely on.
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cstddef>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "simt/cuda/kernel_heap.h"
#include "simt/cuda/launch_syntax.h"
#include "simt/cuda/thread.h"
#include "simt/front/report.h"

// nvcc's promises to its optimizer: nothing is made of them here.
#define __builtin_assume(condition) static_cast<void>(0)
#define __assume(condition) static_cast<void>(0)

namespace simt {

// kernel<<<grid, block, shared_bytes, stream>>>(arguments) is configure(kernel, grid, ..)(arguments).
// nvcc's limit.
template <class... Arguments>
constexpr void check_size() {
  static_assert((sizeof(Arguments) + ... + 0) <= 32764, "a kernel's arguments take more than 32764 bytes");
}

// A kernel gives one that it launches an address: of a variable of its own?
bool in_kernel();
void given_to_a_child(const volatile void* address, const void* kernel);
template <class T>
void given(const T& argument, const void* kernel) {
  if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
    if (in_kernel()) given_to_a_child(argument, kernel);
}

template <class... Params>
class Configured {
 public:
  Configured(void (*kernel)(Params...), const LaunchConfig& config) : kernel_(kernel), config_(config) {}

  // By value: the arguments are copied once, when the kernel is launched, and once more for each of its threads.
  void operator()(Params... arguments) const {
    check_size<Params...>();
    (given(arguments, reinterpret_cast<const void*>(kernel_)), ...);
    if constexpr ((std::is_reference_v<Params> || ...)) {  // to what kernels reach, as managed memory
      launch_now_or_later(config_, reinterpret_cast<const void*>(kernel_),
                          [kernel = kernel_, own = std::tuple<Params...>(arguments...)] { std::apply(kernel, own); });
    } else {
      launch_now_or_later(config_, reinterpret_cast<const void*>(kernel_),
                          [kernel = kernel_, arguments...] { call_kernel(kernel, arguments...); });
    }
  }

 private:
  void (*kernel_)(Params...);
  LaunchConfig config_;
};

template <class... Params>
Configured<Params...> configure(void (*kernel)(Params...), dim3 grid, dim3 block, std::size_t shared_bytes = 0,
                                cudaStream_t stream = nullptr) {
  return {kernel, {grid, block, shared_bytes, stream}};
}

// Where the kernel's name is that of a template or of several functions, and its arguments say which of them is meant:
// deduced([](auto&... a) { kernel(a...); }, grid, ..)(arguments). The address of that function, which the engine wants
// for messages and for static shared memory, is found by a dry call: such a kernel first asks dry_call().
extern constinit thread_local bool dry_calling;
bool end_dry_call();  // to be called by the kernel, whose address it notes; true
const void* dry_called();

__attribute__((always_inline)) inline bool dry_call() { return dry_calling && end_dry_call(); }

template <class Call>
class Deduced {
 public:
  Deduced(Call call, const LaunchConfig& config) : call_(std::move(call)), config_(config) {}

  template <class... Args>
  void operator()(Args... arguments) const {
    check_size<Args...>();
    const auto body = [call = call_, arguments...] {
      std::tuple<Args...> own(arguments...);  // of each thread, as parameters are
      std::apply(call, own);
    };
    dry_calling = true;
    body();
    launch_now_or_later(config_, dry_called(), body);
  }

 private:
  Call call_;
  LaunchConfig config_;
};

template <class Call>
Deduced<Call> deduced(Call call, dim3 grid, dim3 block, std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return {std::move(call), {grid, block, shared_bytes, stream}};
}

// A name in host code that may be a device function's: the address of such a function is another one there than in
// kernels, for which it is no function's.
const void* address_in_host_code(const void* function, const char* file, int line);
template <class T>
decltype(auto) in_host_code(T&& named, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if constexpr (std::is_function_v<std::remove_reference_t<T>>)
    return *reinterpret_cast<std::remove_reference_t<T>*>(
        address_in_host_code(reinterpret_cast<const void*>(&named), file, line));
  else
    return std::forward<T>(named);
}

// The same of a value: a function pointer that a function of the host has as its template's argument.
template <class T>
T value_in_host_code(T value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if constexpr (std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>)
    return reinterpret_cast<T>(address_in_host_code(reinterpret_cast<const void*>(value), file, line));
  else
    return value;
}

// Around a shared object. Its constructor does not run on a GPU (nvcc says so in a warning). Here it does, when an OS
// thread comes there for the first time; nobody hears of it, and what it leaves is poison, as all shared memory.
void construction_begins();
void construction_ends(void* object, std::size_t bytes);
template <class T>
constexpr bool is_constructed = !std::is_trivially_default_constructible_v<std::remove_all_extents_t<T>>;
template <class T>
constexpr bool before_object() {
  if constexpr (is_constructed<T>) construction_begins();
  return true;
}
template <class... T>
constexpr bool behind_objects(T&... objects) {
  if constexpr ((is_constructed<T> || ...))
    (construction_ends(const_cast<std::remove_cv_t<T>*>(__builtin_addressof(objects)), sizeof objects), ...);
  return true;
}

// Parameters of a kernel with __restrict__, of which at least one may be written through.
struct Restricted {
  const char* name;
  const volatile void* address;
  bool written;
};
void restricted(std::initializer_list<Restricted> parameters);
inline bool is_first_thread() {
  return threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y + blockIdx.z == 0;
}

// Of a device variable, host code has the address of its own shadow, which it gives to a kernel here.
void shadow_for_a_kernel(const char* name, const void* variable, const char* file, int line);
template <class T>
T& address_for_a_kernel(const char* name, T& named, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  shadow_for_a_kernel(name, const_cast<const void*>(static_cast<const volatile void*>(__builtin_addressof(named))),
                      file, line);
  return named;
}
template <class T>
T& array_for_a_kernel(const char* name, T& named, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return std::is_array_v<T> ? address_for_a_kernel(name, named, file, line) : named;
}

// What host code asks, by dynamic_cast, for its type: of an object that a kernel has made it cannot know.
void host_asks_for_type(const volatile void* object, const char* file, int line);
template <class T>
T&& asked_for_type(T&& object, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if constexpr (std::is_pointer_v<std::remove_cvref_t<T>>)
    host_asks_for_type(object, file, line);
  else
    host_asks_for_type(__builtin_addressof(object), file, line);
  return std::forward<T>(object);
}

// What runs on one side may have been called by an address from the other, which is no function's on a GPU: said by the
// function itself, if its address is taken somewhere.
void host_function_in_kernel(const char* name, const void* caller);
void own_function_in_kernel(const char* name, const char* file, int line);
void function_of_both_in_kernel(const void* function, const char* file, int line, const void* caller);
void device_function_on_host(const char* name, const void* caller);

// The addresses that host code has of functions of both sides: of functions that call them, on the host alone.
template <class Result, class... Arguments>
struct OfBothSides {
  struct Taken {
    Result (*function)(Arguments...);
    const char* file;
    int line;
  };
  static constexpr std::size_t most = 8;
  static inline Taken taken[most];

  template <std::size_t i>
  static Result call(Arguments... arguments) {
    if (in_kernel())
      function_of_both_in_kernel(reinterpret_cast<const void*>(taken[i].function), taken[i].file, taken[i].line,
                                 __builtin_return_address(0));
    return taken[i].function(std::forward<Arguments>(arguments)...);
  }

  template <std::size_t... i>
  static auto* of(Result (*function)(Arguments...), const char* file, int line, std::index_sequence<i...>) {
    Result (*found)(Arguments...) = function;  // if there are too many
    const auto is = [&](Taken& each, Result (*caller)(Arguments...)) {
      if (each.function != nullptr && each.function != function) return false;
      if (each.function == nullptr) each = {function, file, line};
      found = caller;
      return true;
    };
    static_cast<void>((is(taken[i], call<i>) || ...));
    return found;
  }
};
template <class Result, class... Arguments>
auto& of_both_sides(Result (*function)(Arguments...), const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  using All = OfBothSides<Result, Arguments...>;
  return *All::of(function, file, line, std::make_index_sequence<All::most>());
}
template <class T>  // no function
T&& of_both_sides(T&& named) {
  return std::forward<T>(named);
}

// The address of either in a default argument, or what a member begins with. In kernels, and before main(), where the
// variables of both sides get their values, the name is the function's.
bool on_the_host();
template <bool of_both, class T>
constexpr T& on_this_side(T& named, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if constexpr (std::is_function_v<T>)
    if (!__builtin_is_constant_evaluated() && on_the_host()) {
      if constexpr (of_both)
        return reinterpret_cast<T&>(of_both_sides(named, file, line));
      else
        return in_host_code(named, file, line);
    }
  return named;
}

// An argument of printf() in device code: if it is a text, the device has to have it.
template <class T>
T printed(T argument) {
  return argument;
}
#ifdef SIMT_TRACED
__attribute__((always_inline)) inline const char* printed(const char* text) {
  text_read(text);
  return text;
}
__attribute__((always_inline)) inline const char* printed(char* text) { return printed(const_cast<const char*>(text)); }
#endif

// Behind all static shared variables (g++ lays them out from the last to the first), so that what is written far beyond
// them does not reach the engine's own variables (shared_memory.h). A shared library has no room for it.
#if !defined(__PIC__) || defined(__PIE__)
__attribute__((used, aligned(16))) static thread_local char simt_guard_last[64 * 1024];
#endif

// extern __shared__ T name[] outside functions: the dynamic shared memory of the block that asks.
template <class T>
struct DynamicShared;
template <class T>
struct DynamicShared<T[]> {
  operator T*() const { return static_cast<T*>(dynamic_shared_memory()); }
  template <class Other>
  explicit operator Other*() const {
    return static_cast<Other*>(dynamic_shared_memory());
  }
};

}  // namespace simt
