// Shared memory is NaN at the start of every block: dynamic and static, in programs and in shared libraries.
#include <dlfcn.h>

#include <cmath>
#include <utility>

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

// Two of one name, in a lambda and in a function that no namespace and no type is part of the name of.
extern "C" __global__ void scopes_are_nan(int* count) {
  const auto in_a_lambda = [] {
    __shared__ int tile[64];
    return std::exchange(tile[threadIdx.x], 0);
  };
  int first, second;
  {
    __shared__ int tile[64];
    first = std::exchange(tile[threadIdx.x], 0);
  }
  {
    __shared__ int tile[64];
    second = std::exchange(tile[threadIdx.x], 0);
  }
  atomicAdd(count, first == -1 && second == -1 && in_a_lambda() == -1);
}

TEST(SharedMemory, of_one_name_in_several_scopes_is_all_nan) { expect_all_nan(scopes_are_nan, 0); }

// A function of the host, with a thread_local of its own; and one of a template, as libraries have them.
int next_number() {
  thread_local int number = 0;
  return ++number;
}

template <class T>
T& kept() {
  static thread_local T value{};
  return value;
}

TEST(SharedMemory, thread_locals_of_the_host_are_left_alone) {
  const WithSchedule schedule({simt::Order::forward, 0, 1});
  next_number();
  kept<std::vector<int>>() = {1, 2, 3};
  kept<float>() = 0.5f;
  expect_all_nan(static_is_nan<float>, 0);
  EXPECT_EQ(next_number(), 2);
  EXPECT_EQ(kept<std::vector<int>>(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(kept<float>(), 0.5f);
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
  const auto next_number = reinterpret_cast<int (*)()>(dlsym(plugin, "next_number_of_plugin"));
  ASSERT_TRUE(poisoned_threads && failure_message && next_number);
  EXPECT_EQ(next_number(), 1);
  EXPECT_EQ(poisoned_threads(), 4 * 32);
  EXPECT_EQ(next_number(), 2);  // a thread_local of the library's own
  expect_contains(failure_message(), "kernel write_past_the_end, block (0, 0, 0), thread (0, 0, 0)");
  expect_contains(failure_message(), "0 bytes past the end of a 4096-byte allocation");
  expect_all_nan(static_is_nan<float>, 0);  // and this program's engine is unimpressed
  dlclose(plugin);
}

}  // namespace
