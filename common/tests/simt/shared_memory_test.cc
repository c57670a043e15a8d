// Shared memory is NaN at the start of every block: dynamic and static, in programs and in shared libraries.
#include <dlfcn.h>

#include <cmath>

#include "tests/simt/support.h"

namespace {

// Counts the elements that are NaN before this block writes them.
__global__ void dynamic_is_nan(int* count) {
  float* tile = dynamic_shared<float>();
  const bool nan = std::isnan(tile[threadIdx.x]);
  tile[threadIdx.x] = 1;
  atomicAdd(count, nan);
}

template <class T>
__device__ int use_in_a_device_function() {
  __shared__ T tile[64];
  const bool nan = std::isnan(float(tile[threadIdx.x]));
  tile[threadIdx.x] = T(1.0f);
  return nan;
}

template <class T>
__global__ void static_is_nan(int* count) {
  __shared__ __align__(16) T tile[64];
  __shared__ T other[3][64];
  const bool nan = std::isnan(float(tile[threadIdx.x])) && std::isnan(float(other[2][threadIdx.x]));
  tile[threadIdx.x] = T(1.0f);
  other[2][threadIdx.x] = T(2.0f);
  atomicAdd(count, nan && use_in_a_device_function<T>());
}

template <class Kernel>
void expect_all_nan(Kernel kernel, size_t dynamic_bytes) {
  for (const int threads : {1, 3}) {
    const WithSchedule schedule({simt::Order::forward, 0, threads});
    Device<int> count(std::vector<int>{0});
    launch(kernel, {20, 64, dynamic_bytes}, count);
    EXPECT_EQ(count.values()[0], 20 * 64);
  }
}

TEST(SharedMemory, dynamic_is_nan_at_the_start_of_every_block) { expect_all_nan(dynamic_is_nan, 64 * sizeof(float)); }

TEST(SharedMemory, static_is_nan_at_the_start_of_every_block) {
  expect_all_nan(static_is_nan<float>, 0);
  expect_all_nan(static_is_nan<__half>, 0);
  expect_all_nan(static_is_nan<__nv_bfloat16>, 0);
}

__global__ void address_of_dynamic(std::uintptr_t* address) {
  *address = reinterpret_cast<std::uintptr_t>(dynamic_shared<char>());
}

TEST(SharedMemory, dynamic_is_aligned_to_128_bytes) {
  for (const size_t bytes : {1, 100, 128, 1000, 232448}) {
    Device<std::uintptr_t> address(1);
    launch(address_of_dynamic, {1, 1, bytes}, address);
    EXPECT_EQ(address.values()[0] % 128, 0u);
  }
}

TEST(SharedMemory, is_found_in_a_shared_library) {
  void* plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr) << dlerror();
  const auto poisoned_threads = reinterpret_cast<int (*)()>(dlsym(plugin, "poisoned_threads"));
  const auto failure_message = reinterpret_cast<const char* (*)()>(dlsym(plugin, "failure_message"));
  ASSERT_TRUE(poisoned_threads && failure_message);
  EXPECT_EQ(poisoned_threads(), 4 * 32);
  expect_contains(failure_message(), "kernel write_past_the_end, block (0, 0, 0), thread (0, 0, 0)");
  expect_contains(failure_message(), "0 bytes past the end of a 4096-byte allocation");
  expect_all_nan(static_is_nan<float>, 0);  // and this program's engine is unimpressed
  dlclose(plugin);
}

}  // namespace
