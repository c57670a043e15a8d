// Launching a kernel, and in which order its blocks and threads run.
#pragma once

#include <cstdint>

#include "simt/runtime.h"
#include "simt/types.h"

namespace simt {

// What each thread of a grid calls: it refers to a callable that outlives it. Not std::function, because every kernel's
// file includes this header and would take the compiler a third of a second longer.
class Body {
 public:
  template <class Callable>
  Body(const Callable& callable)
      : callable_(&callable), call_([](const void* c) { (*static_cast<const Callable*>(c))(); }) {}

  void operator()() const { call_(callable_); }

 private:
  const void* callable_;
  void (*call_)(const void* callable);
};

// Runs `body` (a call of the kernel with its arguments) once per thread of the grid and returns when all are done.
// `kernel` is the kernel's address: the name in messages, and where its static shared memory is looked up.
// After a failure cudaGetErrorString(the returned code) is the full diagnosis. `dependent`: on a GPU it might start
// before the kernel before it has ended (programmatic dependent launch), so all its threads must call
// grid_dependency_wait().
cudaError_t launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, const Body& body,
                   bool dependent = false);

enum class Order { forward, reverse, shuffled };

// The order of the blocks in the grid, of the warps in a block and of the lanes in a warp, wherever CUDA leaves it
// open. A correct kernel gives the same result in every order.
struct Schedule {
  Order order = Order::forward;
  std::uint64_t seed = 0;  // of Order::shuffled
  int threads = 1;         // OS threads that share the grid, at least 1
};

// At first what the environment says: SIMT_ORDER=forward|reverse|shuffled:SEED, SIMT_THREADS=N (default: the cores
// of this machine, at most 16).
Schedule schedule();
void set_schedule(const Schedule& schedule);

// Shared memory that a block may have, in bytes. At first an H100's, 227 KB; a test may make it less, for the sake of
// kernels that choose by it.
std::size_t max_shared();
void set_max_shared(std::size_t bytes);

}  // namespace simt
