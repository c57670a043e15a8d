// Kernels and engine in one shared library, loaded by shared_memory_test.cc: is the library's own static shared
// memory found and refilled, and do messages name its kernels?
#include "device/cuda_error.h"
#include "device/launch.h"

namespace {

template <int n>
__global__ void leave_marks(int* poisoned) {
  __shared__ int tile[n];
  atomicAdd(poisoned, tile[threadIdx.x] == -1);
  tile[threadIdx.x] = threadIdx.x;
}

__global__ void write_past_the_end(int* x) { x[1] = 0; }

}  // namespace

extern "C" int next_number_of_plugin() {
  thread_local int number = 0;
  return ++number;
}

// How many of 4 * 32 threads found 0xFF in shared memory.
extern "C" int poisoned_threads() {
  int* poisoned;
  check(cudaMalloc(&poisoned, 4 * sizeof(int)));
  check(cudaMemset(poisoned, 0, 4 * sizeof(int)));
  launch(leave_marks<32>, {4, 32}, poisoned);
  int count;
  check(cudaMemcpy(&count, poisoned, sizeof count, cudaMemcpyDeviceToHost));
  check(cudaFree(poisoned));
  return count;
}

extern "C" const char* failure_message() {
  int* x;
  check(cudaMalloc(&x, 0x1000));
  try {
    launch(write_past_the_end, {1, 1}, x + 1023);
  } catch (const CudaError& error) {
    return cudaGetErrorString(error.code());
  }
  return "nothing failed";
}
