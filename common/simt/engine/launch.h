// Launching a kernel, and in which order its blocks and threads run.
#pragma once

#include <cstdint>

#include "simt/engine/error.h"
#include "simt/engine/types.h"

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
// grid_dependency_wait(). `cluster`: so many blocks run together and reach each other's shared memory;
// cudaErrorInvalidClusterSize if the grid is not made of such clusters.
cudaError_t launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, const Body& body,
                   bool dependent = false, dim3 cluster = {});

// The same for a kernel whose blocks wait for one another (grid_group::sync): all of them are under way at once, on one
// OS thread, and take turns. Refused if they would not fit on an H100's 132 multiprocessors together.
cudaError_t launch_cooperative(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, const Body& body);

void allow_non_portable_clusters(const void* kernel, bool allowed);  // of more than 8 blocks, up to 16

std::uint64_t launch_count();              // so far, of this process
std::uint64_t sampled_launches();          // those of them of which only a sample of their blocks ran
void before_first_launch(void (*call)());  // is called then, or when a launch is refused before
void first_launch_comes();

// How many clusters of so many such blocks an H100 runs at once: a cluster's blocks are on one of its groups of
// multiprocessors. The engine takes six groups of 16 and two of 18; H100s differ in that.
int clusters_at_once(unsigned blocks, std::size_t threads, std::size_t shared_bytes);

// How many blocks of so many threads and bytes of shared memory an H100's multiprocessor holds at once.
int blocks_per_multiprocessor(std::size_t threads, std::size_t shared_bytes);

enum class Order {
  forward,
  reverse,
  shuffled,
  // As `forward`, on one OS thread, but a block that has come to its first barrier makes room for the next one. When
  // sixteen have, the last of them goes on first. So a block that should wait for another one, and does not, is too
  // early.
  last_first
};

// The order of the blocks in the grid, of the warps in a block and of the lanes in a warp, wherever CUDA leaves it
// open. A correct kernel gives the same result in every order.
struct Schedule {
  Order order = Order::forward;
  std::uint64_t seed = 0;  // of Order::shuffled
  int threads = 1;         // OS threads that share the grid, at least 1
  // Seconds of processor time after which a thread that has neither waited nor returned fails: whatever its loop waits
  // for is written by a thread that does not get its turn.
  double patience = 10;
  // Only so many blocks of each launch run, spread evenly over its grid; 0: all. A cooperative launch runs whole.
  std::uint64_t sample = 0;
};

// At first what the environment says: SIMT_ORDER=forward|reverse|shuffled:SEED, SIMT_THREADS=N (default: the cores
// of this machine, at most 16), SIMT_BLOCKS=N, a sample; as much patience as SIMT_SECONDS, if that is more.
Schedule schedule();
void set_schedule(const Schedule& schedule);

// Shared memory that a block may have, in bytes. At first an H100's, 227 KB; a test may make it less, for the sake of
// kernels that choose by it.
std::size_t max_shared();
void set_max_shared(std::size_t bytes);

// The compute capability that the device says it has: 90 at first, which is 9.0. What it can do does not change.
int capability();
void set_capability(int capability);

}  // namespace simt
