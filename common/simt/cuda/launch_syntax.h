// kernel<<<grid, block, shared_bytes, stream>>>(arguments) in a program from elsewhere.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "simt/cuda/runtime.h"
#include "simt/engine/launch.h"

namespace simt {

struct LaunchConfig {
  LaunchConfig(dim3 grid, dim3 block, std::size_t shared_bytes = 0, cudaStream_t stream = nullptr)
      : grid(grid), block(block), shared_bytes(shared_bytes), stream(stream) {}

  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
  dim3 cluster = {};
};

// Launches. What fails is printed on stderr, because such programs seldom ask. As with CUDA, cudaGetLastError() gives
// the code; and after a mistake in a kernel, so does every call from then on.
void launch_by_syntax(const LaunchConfig& config, const void* kernel, const Body& body);

// The same of a launch by a function of the runtime; the code is what that returns. `cooperative`: see
// launch_cooperative().
cudaError_t launch_as_cuda(const LaunchConfig& config, const void* kernel, const Body& body, bool cooperative = false);

// Of a kernel: as much dynamic shared memory as cudaFuncSetAttribute allows it. Without that, a block has 48 KB.
void opt_in(const void* kernel, std::size_t bytes);

// A kernel's call with arguments of its own, for a launch that comes later.
class Call {
 public:
  virtual ~Call() = default;
  virtual void operator()() const = 0;

 private:
  friend class SharedCall;
  mutable int holders_ = 0;
};

// What a SharedCall is: with its header, g++ would take half as long again for every file.
class SharedCall {
 public:
  explicit SharedCall(const Call* call) : call_(call) { hold(); }
  SharedCall(const SharedCall& other) : call_(other.call_) { hold(); }
  SharedCall& operator=(const SharedCall&) = delete;
  ~SharedCall() {
    if (__atomic_sub_fetch(&call_->holders_, 1, __ATOMIC_ACQ_REL) == 0) delete call_;
  }
  void operator()() const { (*call_)(); }

 private:
  void hold() { __atomic_add_fetch(&call_->holders_, 1, __ATOMIC_RELAXED); }
  const Call* call_;
};

template <class Callable>
class CallOf : public Call {
 public:
  explicit CallOf(const Callable& callable) : callable_(callable) {}
  void operator()() const override { callable_(); }

 private:
  Callable callable_;
};

// Each thread has its own copies of the arguments, whose destructors do not run, as on a GPU: what the host copies, the
// host destroys. So arguments that C++ passes by reference to a copy (those with a constructor for copies, or a
// destructor, of their own) are copied here, byte by byte.
template <class P>
inline constexpr bool passed_plainly = std::is_trivially_copy_constructible_v<P>&& std::is_trivially_destructible_v<P>;

void argument_with_tables(const void* object, std::size_t bytes);  // of virtual functions, perhaps
template <class P>
struct Bytes {
  explicit Bytes(const P& from) {
    __builtin_memcpy(bytes, &from, sizeof bytes);
    if constexpr (sizeof(P) >= sizeof(void*)) argument_with_tables(bytes, sizeof bytes);
  }
  P& operator*() { return *reinterpret_cast<P*>(bytes); }
  alignas(P) char bytes[sizeof(P)];
};

template <class... P>
__attribute__((always_inline)) inline void call_kernel(void (*kernel)(P...), const P&... arguments) {
  if constexpr ((passed_plainly<P> && ...)) {
    kernel(arguments...);
  } else {
    const auto by_reference = reinterpret_cast<void (*)(std::conditional_t<passed_plainly<P>, P, P&>...)>(kernel);
    by_reference(*Bytes<P>(arguments)...);
  }
}

// Whether a launch comes later: on a stream whose work becomes a graph (graphs.cc), when that runs; from inside a
// kernel, when that has ended.
bool comes_later(cudaStream_t stream);
cudaError_t launch_later(const LaunchConfig& config, const void* kernel, SharedCall call, bool cooperative = false);

// `callable` has copies of all that it needs.
template <class Callable>
cudaError_t launch_now_or_later(const LaunchConfig& config, const void* kernel, const Callable& callable,
                                bool cooperative = false) {
  if (__builtin_expect(comes_later(config.stream), false))
    return launch_later(config, kernel, SharedCall(new CallOf<Callable>(callable)), cooperative);
  return launch_as_cuda(config, kernel, callable, cooperative);
}

// A kernel's call with the arguments that the pointers show, copied.
using ArgumentsOf = SharedCall (*)(void** arguments);

template <class P>
P argument_at(void* place) {
  if constexpr (std::is_reference_v<P>)
    return **static_cast<std::remove_reference_t<P>**>(place);
  else
    return *static_cast<std::remove_const_t<P>*>(place);
}

template <class... P, std::size_t... i>
SharedCall call_with(void (*kernel)(P...), void** arguments, std::index_sequence<i...>) {
  const auto call = [kernel, own = std::tuple<std::remove_const_t<P>...>(argument_at<P>(arguments[i])...)] {
    std::apply(kernel, own);
  };
  return SharedCall(new CallOf<decltype(call)>(call));
}

template <class... P>
SharedCall call_with(void (*kernel)(P...), void** arguments) {
  return call_with(kernel, arguments, std::index_sequence_for<P...>());
}

// What is known of a kernel of which only the address is left, as a void*. simt-compile has each kernel name itself
// here, in files that launch so.
struct KernelOfAddress {
  KernelOfAddress(const void* address, ArgumentsOf arguments);
  static ArgumentsOf find(const void* address);  // null if there is none
};

template <auto* kernel>
struct NamedKernel {
  static SharedCall arguments(void** pointers) { return call_with(kernel, pointers); }
  static const KernelOfAddress self;
};
template <auto* kernel>
const KernelOfAddress NamedKernel<kernel>::self{reinterpret_cast<const void*>(kernel), arguments};

}  // namespace simt
