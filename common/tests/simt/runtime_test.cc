// The host functions under their CUDA names.
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "simt/cuda/host_memory.h"
#include "tests/simt/support.h"

namespace {

void expect_invalid(cudaError_t error, const std::string& part) {
  EXPECT_EQ(error, cudaErrorInvalidValue);
  expect_contains(cudaGetErrorString(error), part);
}

TEST(Runtime, fresh_memory_is_nan) {
  const auto values = Device<float>(1000).values();
  for (const float v : values) ASSERT_TRUE(std::isnan(v));
}

TEST(Runtime, allocations_are_aligned) {
  for (const size_t bytes : {1, 15, 16, 100, 256, 1000, 4096, 4097, 65536, 1000192}) {
    char* p;
    check(cudaMalloc(&p, bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % (bytes % 256 == 0 ? 256 : 16), 0u) << bytes;
    check(cudaFree(p));
  }
}

TEST(Runtime, copies_and_fills) {
  Device<int> a(std::vector<int>{1, 2, 3, 4}), b(4);
  check(cudaMemcpyAsync(b, a, 16, cudaMemcpyDeviceToDevice));
  check(cudaMemset(b + 1, 0, 4));
  EXPECT_EQ(b.values(), (std::vector<int>{1, 0, 3, 4}));
  check(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDeviceToHost));
  check(cudaFree(nullptr));
  int* nothing = reinterpret_cast<int*>(1);
  check(cudaMalloc(&nothing, 0));
  EXPECT_EQ(nothing, nullptr);
}

TEST(Runtime, copies_out_of_bounds_are_refused) {
  Device<int> a(100);
  std::vector<int> host(200);
  expect_invalid(cudaMemcpy(a, host.data(), 404, cudaMemcpyHostToDevice), "cudaMemcpy of 404 bytes: the destination ");
  expect_invalid(cudaMemcpy(a, host.data(), 404, cudaMemcpyHostToDevice),
                 "4 bytes past the end of a 400-byte allocation");
  expect_invalid(cudaMemcpy(host.data(), a + 90, 44, cudaMemcpyDeviceToHost), "the source ");
  expect_invalid(cudaMemcpy(host.data(), a - 1, 4, cudaMemcpyDeviceToHost), "4 bytes before the start");
  expect_invalid(cudaMemset(a + 99, 0, 8), "4 bytes past the end of a 400-byte allocation");
  expect_invalid(cudaMemset(host.data(), 0, 8), "not device memory");
}

TEST(Runtime, copies_in_the_wrong_direction_are_refused) {
  Device<int> a(100);
  std::vector<int> host(100);
  expect_invalid(cudaMemcpy(host.data(), a, 400, cudaMemcpyHostToDevice), "not device memory");
  expect_invalid(cudaMemcpy(a, host.data(), 400, cudaMemcpyDeviceToHost), "the destination");
  expect_invalid(cudaMemcpy(a, nullptr, 400, cudaMemcpyHostToDevice), "a null pointer");
  EXPECT_EQ(cudaMemcpy(a, host.data(), 400, cudaMemcpyKind(9)), cudaErrorInvalidMemcpyDirection);
  check(cudaMemcpy(a, host.data(), 400, cudaMemcpyDefault));
}

TEST(Runtime, frees_of_what_is_not_an_allocation_are_refused) {
  int* p;
  check(cudaMalloc(&p, 400));
  expect_invalid(cudaFree(p + 1), "4 bytes into a 400-byte allocation, not its start");
  check(cudaFree(p));
  expect_invalid(cudaFree(p), "a 400-byte allocation that was freed already");
  int on_the_stack;
  expect_invalid(cudaFree(&on_the_stack), "not the start of an allocation");
  expect_invalid(cudaMemset(p, 0, 4), "that was freed");
}

TEST(Runtime, more_memory_than_there_is) {
  size_t free, total;
  check(cudaMemGetInfo(&free, &total));
  EXPECT_GT(free, 0u);
  EXPECT_LE(free, total);
  char* p;
  EXPECT_EQ(cudaMalloc(&p, total + 1), cudaErrorMemoryAllocation);
  expect_contains(cudaGetErrorString(cudaErrorMemoryAllocation), "cudaMalloc: " + std::to_string(total + 1) + " bytes");
  EXPECT_EQ(cudaMalloc(&p, ~size_t(0)), cudaErrorMemoryAllocation);
  EXPECT_EQ(p, nullptr);
}

// The files of a container, as both versions of control groups have them.
struct Container {
  explicit Container(std::map<std::string, std::string> files) {
    for (const auto& [name, text] : files) {
      std::filesystem::create_directories((root / name).parent_path());
      std::ofstream(root / name) << text;
    }
  }
  ~Container() { std::filesystem::remove_all(root); }
  simt::HostMemory memory() const { return simt::host_memory(root.string()); }

  std::filesystem::path root = std::filesystem::temp_directory_path() / ("container-" + std::to_string(getpid()));
};

TEST(Runtime, memory_that_only_caches_files_is_free) {
  const std::string statistics = "anon 100\ninactive_file 700000\nactive_file 50000\n", group = "sys/fs/cgroup/";
  for (const auto& [limit, usage, of] :
       {std::array{"memory.max", "memory.current", "memory.stat"},
        std::array{"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"}}) {
    const simt::HostMemory full =
        Container({{group + limit, "800000\n"}, {group + usage, "800000\n"}, {group + of, statistics}}).memory();
    EXPECT_EQ(full.free, 750000u) << limit;
    EXPECT_EQ(full.total, 800000u);
    EXPECT_EQ(Container({{group + limit, "800000\n"}, {group + usage, "900000\n"}}).memory().free, 0u);
    EXPECT_EQ(Container({{group + limit, "800000\n"}}).memory().free, 800000u);
  }
  const simt::HostMemory machine =
      Container({{group + "memory.max", "max\n"}, {"proc/meminfo", "MemAvailable: 700 kB\n"}}).memory();
  EXPECT_EQ(machine.free, 700u * 1024);
  EXPECT_GT(machine.total, machine.free);
}

TEST(Runtime, many_allocations_come_and_go) {
  std::vector<char*> live;
  for (int i = 0; i < 3000; ++i) {
    char* p;
    ASSERT_EQ(cudaMalloc(&p, 1 + i * 37 % 9000), cudaSuccess);
    live.push_back(p);
    if (live.size() > 20) {
      check(cudaFree(live[i % 20]));
      live.erase(live.begin() + i % 20);
    }
  }
  for (char* p : live) check(cudaFree(p));
}

TEST(Runtime, streams_and_events) {
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start));
  check(cudaEventCreateWithFlags(&stop, cudaEventDefault));
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, stop), cudaErrorInvalidResourceHandle);
  check(cudaEventRecord(start, stream));
  check(cudaEventRecord(stop, stream));
  check(cudaEventSynchronize(stop));
  check(cudaStreamSynchronize(stream));
  check(cudaEventElapsedTime(&milliseconds, start, stop));
  EXPECT_GE(milliseconds, 0);
  EXPECT_LT(milliseconds, 1000);
  check(cudaEventDestroy(start));
  EXPECT_EQ(cudaEventRecord(start, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(start), cudaErrorInvalidResourceHandle);
  check(cudaEventDestroy(stop));
  check(cudaStreamDestroy(stream));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
}

TEST(Runtime, device) {
  int count, device, value, version;
  check(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 1);
  check(cudaSetDevice(0));
  check(cudaGetDevice(&device));
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0));
  EXPECT_STREQ(properties.name, "SIMT engine (CPU)");
  EXPECT_EQ(properties.multiProcessorCount, simt::schedule().threads);
  EXPECT_EQ(properties.sharedMemPerBlockOptin, 232448u);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_GT(properties.l2CacheSize, 0);
  check(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  EXPECT_EQ(value, 232448);
  check(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  EXPECT_EQ(value, 9);
  check(cudaRuntimeGetVersion(&version));
  EXPECT_GE(version, 12040);
  check(cudaDeviceSynchronize());
}

__global__ void nothing() {}

TEST(Runtime, function_attributes) {
  check(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));
  expect_invalid(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 * 1024),
                 "kernel nothing: 233472 bytes of dynamic shared memory: a block can have 232448");
}

TEST(Runtime, errors_have_names) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorNoDevice), "no CUDA-capable device is detected");
}

}  // namespace
