// A kernel for every mistake that the engine promises to find, and what it must say about it.
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "device/numeric.h"
#include "tests/simt/support.h"

namespace {

std::string at_line(int line) { return "simt/mistakes_test.cc:" + std::to_string(line); }

// The line of a faulting access is known where addr2line is.
void expect_fault_line(const std::string& message, int line) {
  static const bool known = std::system("addr2line --version > /dev/null 2>&1") == 0;
  if (known) expect_contains(message, "at " + at_line(line) + ":");
}

__global__ void fill(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 1;
}

// The engine works as if nothing had happened.
void expect_usable() {
  Device<float> x(1000);
  launch(fill, {8, 128}, x, 1000);
  for (const float v : x.values()) ASSERT_EQ(v, 1.0f);
}

class Mistake : public testing::Test {
 protected:
  void TearDown() override { expect_usable(); }

 private:
  // Which thread is first to fail depends on the order.
  WithSchedule forward_{{simt::Order::forward, 0, simt::schedule().threads}};
};

// ---- global memory

constexpr int write_line = __LINE__ + 2;
__global__ void write_at(float* x, int i) {
  if (blockIdx.y == 1 && threadIdx.x == 5) x[i] = 1;
}
constexpr int read_line = __LINE__ + 1;
__global__ void read_at(float* out, const float* x, int i) { *out = x[i]; }

TEST_F(Mistake, write_past_the_end) {
  Device<float> x(16000);
  const Failure failure = failure_of(write_at, LaunchConfig{{3, 2}, 32}, x, 16001);
  EXPECT_EQ(failure.code, cudaErrorIllegalAddress);
  expect_contains(failure.message, "kernel write_at, block (");
  expect_contains(failure.message, ", 1, 0), thread (5, 0, 0)");
  expect_contains(failure.message, "invalid write at byte 64004, 4 bytes past the end of a 64000-byte allocation");
  expect_fault_line(failure.message, write_line);
}

TEST_F(Mistake, read_past_the_end_by_one) {
  for (const int n : {4, 64, 1000, 1024, 4096}) {
    Device<float> x(n), out(1);
    const Failure failure = failure_of(read_at, LaunchConfig{1, 1}, out, x, n);
    EXPECT_EQ(failure.code, cudaErrorIllegalAddress);
    expect_contains(failure.message, "invalid read at byte " + std::to_string(4 * n) + ", 0 bytes past the end of a " +
                                         std::to_string(4 * n) + "-byte allocation");
    expect_fault_line(failure.message, read_line);
  }
}

constexpr int called_line = __LINE__ + 1;
[[gnu::noinline]] __device__ float read_for_another(const float* x, int i) { return x[i]; }
[[gnu::always_inline]] __device__ inline float read_in_place(const float* x, int i) { return x[i]; }
__global__ void call_to_read(float* out, const float* x, bool in_place) {
  if (!in_place) *out = read_for_another(x, 4);
  if (in_place) *out = read_in_place(x, 4);
}

TEST_F(Mistake, fault_in_a_function_of_the_kernel_names_the_call_too) {
  Device<float> x(4), out(1);
  for (const bool in_place : {false, true}) {
    const std::string called = at_line(called_line + in_place), call = at_line(called_line + 3 + in_place);
    expect_contains(failure_of(call_to_read, LaunchConfig{1, 1}, out, x, in_place).message,
                    "at " + called + " (called at " + call + "): invalid read");
  }
}

TEST_F(Mistake, access_before_the_start) {
  Device<float> x(1024), out(1);
  expect_contains(failure_of(read_at, LaunchConfig{1, 1}, out, x, -2).message,
                  "invalid read 8 bytes before the start of a 4096-byte allocation");
}

TEST_F(Mistake, use_after_free) {
  float* x;
  check(cudaMalloc(&x, 4000));
  check(cudaFree(x));
  Device<float> other(1000), out(1);  // must not get the freed addresses
  const Failure failure = failure_of(read_at, LaunchConfig{1, 1}, out, x, 3);
  EXPECT_EQ(failure.code, cudaErrorIllegalAddress);
  expect_contains(failure.message, "invalid read at byte 12 of a 4000-byte allocation that was freed");
}

TEST_F(Mistake, null_pointer) {
  Device<float> out(1);
  const Failure failure = failure_of(read_at, LaunchConfig{1, 1}, out, nullptr, 2);
  EXPECT_EQ(failure.code, cudaErrorIllegalAddress);
  expect_contains(failure.message, "invalid read of a null pointer, at byte 8");
  expect_fault_line(failure.message, read_line);
}

TEST_F(Mistake, address_of_nothing) {
  Device<float> out(1);
  const auto* nothing = reinterpret_cast<const float*>(std::uintptr_t(0x10000));
  expect_contains(failure_of(read_at, LaunchConfig{1, 1}, out, nothing, 0).message,
                  "invalid read at 0x10000, which is not device memory");
}

__global__ void load_vector(float4* out, const float* x) { *out = *reinterpret_cast<const float4*>(x); }

constexpr int wrapper_line = __LINE__ + 1;
__global__ void load_with_a_wrapper(__half* out, const __half* x) { store_pack8(out, load_pack8(x)); }

TEST_F(Mistake, fault_in_a_wrapper_is_named_by_the_kernel_s_line) {
  Device<__half> x(64), out(64);
  const Failure failure = failure_of(load_with_a_wrapper, LaunchConfig{1, 1}, out, x + 64);
  expect_contains(failure.message, "invalid read at byte 128, 0 bytes past the end of a 128-byte allocation");
  expect_fault_line(failure.message, wrapper_line);
}

TEST_F(Mistake, misaligned_vector) {
  Device<float> x(64);
  Device<float4> out(1);
  const Failure failure = failure_of(load_vector, LaunchConfig{1, 1}, out, x + 1);
  EXPECT_EQ(failure.code, cudaErrorMisalignedAddress);
  expect_contains(failure.message, "misaligned access");
}

__global__ void copy_async(const float* x, size_t bytes) {
  simt::cp_async(dynamic_shared<float>(), x, bytes, bytes);
  simt::cp_async_commit();
  simt::cp_async_wait(0);
}

TEST_F(Mistake, cp_async_of_wrong_bytes) {
  Device<float> x(64);
  expect_contains(failure_of(copy_async, LaunchConfig{1, 1, 64}, x, 12).message, "cp.async of 12 bytes");
  EXPECT_EQ(failure_of(copy_async, LaunchConfig{1, 1, 64}, x + 1, 16).code, cudaErrorMisalignedAddress);
  expect_contains(failure_of(copy_async, LaunchConfig{1, 1, 64}, x + 64, 16).message,
                  "invalid read at byte 256, 0 bytes past the end of a 256-byte allocation");
}

// ---- barriers and collectives

constexpr int barrier_a = __LINE__ + 3;
__global__ void divergent_barrier() {
  if (threadIdx.x < 10)
    __syncthreads();
  else
    __syncthreads();
}

TEST_F(Mistake, divergent_barrier) {
  const Failure failure = failure_of(divergent_barrier, LaunchConfig{1, 64});
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "kernel divergent_barrier, block (0, 0, 0): barrier divergence");
  expect_contains(failure.message, "lanes 0-9 of warp 0 wait in __syncthreads at " + at_line(barrier_a) +
                                       "; 54 threads (first: (10, 0, 0)) wait in __syncthreads at " +
                                       at_line(barrier_a + 2));
}

constexpr int warp_line = __LINE__ + 3;
__global__ void warp_waits_for_barrier() {
  if (threadIdx.x % 32 < 3)
    __syncwarp();
  else
    __syncthreads();
}

TEST_F(Mistake, deadlock_of_warp_and_barrier) {
  const Failure failure = failure_of(warp_waits_for_barrier, LaunchConfig{1, 64});
  EXPECT_EQ(failure.code, cudaErrorLaunchTimeout);
  const auto in_warp = [](const std::string& warp) {
    return "lanes 0-2 of warp " + warp + " wait in __syncwarp at " + at_line(warp_line) +
           " (mask 0xffffffff; lanes 3-31 of warp " + warp + " wait elsewhere)";
  };
  expect_contains(
      failure.message,
      "kernel warp_waits_for_barrier, block (0, 0, 0): deadlock: every thread of the block waits: " + in_warp("0") +
          "; 58 threads (first: (3, 0, 0)) wait in __syncthreads at " + at_line(warp_line + 2) +
          " (58 of 64 threads have come; 6 threads (first: (0, 0, 0)) wait elsewhere); " + in_warp("1"));
}

constexpr int named_line = __LINE__ + 3;
__global__ void named_barrier(int number, int first_warp, int second_warp) {
  __syncthreads();  // all have waited before
  simt::named_barrier("bar.sync", number, threadIdx.x < 32 ? first_warp : second_warp, true);
}

TEST_F(Mistake, named_barrier_that_warps_expect_different_threads_at) {
  const Failure failure = failure_of(named_barrier, LaunchConfig{1, 64}, 3, 64, 96);
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "thread (32, 0, 0), at " + at_line(named_line));
  expect_contains(failure.message,
                  "bar.sync on barrier 3 for 96 threads: 32 have come to it that expect 64: warp 0 waits in "
                  "bar.sync at " +
                      at_line(named_line) + " (barrier 3: 32 of 64 threads have come; warp 1 has not come)");
}

TEST_F(Mistake, named_barrier_that_too_few_come_to) {
  const Failure failure = failure_of(named_barrier, LaunchConfig{1, 64}, 3, 96, 96);
  EXPECT_EQ(failure.code, cudaErrorLaunchTimeout);
  expect_contains(failure.message, "deadlock: every thread of the block waits: warps 0-1 wait in bar.sync at " +
                                       at_line(named_line) +
                                       " (barrier 3: 64 of 96 threads have come, and the block has no others)");
}

// Warps 0 and 1 wait at barrier 5, to which warp 2 came without waiting; warp 3 is at the block's barrier with it, warp
// 4 has returned.
constexpr int beside_line = __LINE__ + 4;
__global__ void named_barrier_beside_the_block_s() {
  const unsigned warp = threadIdx.x / 32;
  if (warp == 4) return;
  if (warp < 2) simt::named_barrier("bar.sync", 5, 160, true);
  if (warp == 2) simt::named_barrier("bar.arrive", 5, 160, false);
  __syncthreads();
}

TEST_F(Mistake, named_barrier_that_threads_at_the_block_s_barrier_do_not_come_to) {
  const Failure failure = failure_of(named_barrier_beside_the_block_s, LaunchConfig{1, 160});
  EXPECT_EQ(failure.code, cudaErrorLaunchTimeout);
  expect_contains(failure.message,
                  "warps 0-1 wait in bar.sync at " + at_line(beside_line) +
                      " (barrier 5: 96 of 160 threads have come; warp 3 waits elsewhere; warp 4 has returned); "
                      "warps 2-3 wait in __syncthreads at " +
                      at_line(beside_line + 2) + " (64 of 128 threads have come; warps 0-1 wait elsewhere)");
}

// A barrier that has let its threads go starts over, with another number of threads if they say so.
constexpr int again_line = __LINE__ + 3;
__global__ void named_barrier_twice(int second) {
  simt::named_barrier("bar.sync", 1, 64, true);
  simt::named_barrier("bar.sync", 1, second, true);
}

TEST_F(Mistake, named_barrier_that_too_few_come_to_the_second_time) {
  EXPECT_EQ(failure_of(named_barrier_twice, LaunchConfig{1, 64}, 32).code, cudaSuccess);
  expect_contains(failure_of(named_barrier_twice, LaunchConfig{1, 64}, 96).message,
                  "warps 0-1 wait in bar.sync at " + at_line(again_line) + " (barrier 1: 64 of 96 threads have come");
}

TEST_F(Mistake, named_barrier_with_impossible_numbers) {
  expect_contains(failure_of(named_barrier, LaunchConfig{1, 64}, 0, 64, 64).message, "the number must be 1 to 15");
  expect_contains(failure_of(named_barrier, LaunchConfig{1, 64}, 16, 64, 64).message, "the number must be 1 to 15");
  expect_contains(failure_of(named_barrier, LaunchConfig{1, 64}, 1, 40, 40).message, "must be a multiple of 32");
}

__global__ void wait_for_the_kernel_before(unsigned threads) {
  if (threadIdx.x < threads) grid_dependency_wait();
}

TEST_F(Mistake, dependent_launch_in_which_a_thread_does_not_wait) {
  EXPECT_EQ(failure_of_dependent(wait_for_the_kernel_before, LaunchConfig{2, 64}, 64).code, cudaSuccess);
  EXPECT_EQ(failure_of(wait_for_the_kernel_before, LaunchConfig{2, 64}, 32).code, cudaSuccess);
  const Failure failure = failure_of_dependent(wait_for_the_kernel_before, LaunchConfig{1, 64}, 63);
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "thread (63, 0, 0)");
  expect_contains(failure.message, "returned without having waited for the kernel before");
}

constexpr int value_line = __LINE__ + 2;
__global__ void waits_for_a_value(int* words, int value) {
  if (threadIdx.x == 3 || threadIdx.x > 61) simt::wait_for_value("semaphore_wait", words + (threadIdx.x > 61), value);
  __syncthreads();
}

std::string for_a_value(int value, int now) {
  return "wait in semaphore_wait at " + at_line(value_line) + " (the value is " + std::to_string(now) +
         ", and no block that has started is left to make it " + std::to_string(value) + ")";
}

TEST_F(Mistake, semaphore_that_no_block_sets) {
  Device<int> words(std::vector<int>{4, 6});
  const Failure failure = failure_of(waits_for_a_value, LaunchConfig{1, 64}, words, 5);
  EXPECT_EQ(failure.code, cudaErrorLaunchTimeout);
  expect_contains(failure.message,
                  "deadlock: every thread of the block waits: 61 threads (first: (0, 0, 0)) wait in __syncthreads at " +
                      at_line(value_line + 1) +
                      " (61 of 64 threads have come; 3 threads (first: (3, 0, 0)) wait elsewhere); lane 3 of warp 0 "
                      "waits" +
                      for_a_value(5, 4).substr(4) + "; lanes 30-31 of warp 1 " + for_a_value(5, 6));
  EXPECT_EQ(failure_of(waits_for_a_value, LaunchConfig{1, 64}, words, 4).code, cudaErrorLaunchTimeout);
}

// Two blocks that wait for each other, each on an OS thread of its own.
__global__ void waits_for_the_other_block(int* words) {
  atomicAdd(words + 2, 1);
  while (atomicAdd(words + 2, 0) < 2) std::this_thread::yield();  // both have started
  simt::wait_for_value("semaphore_wait", words + blockIdx.x, 1);
  words[1 - blockIdx.x] = 1;
}

TEST_F(Mistake, semaphores_that_blocks_wait_for_in_a_circle) {
  const WithSchedule two{{simt::Order::forward, 0, 2}};
  Device<int> words(std::vector<int>{0, 0, 0});
  const Failure failure = failure_of(waits_for_the_other_block, LaunchConfig{2, 1}, words);
  EXPECT_EQ(failure.code, cudaErrorLaunchTimeout);
  expect_contains(failure.message, "warp 0 waits in semaphore_wait at ");
}

__global__ void waits_for_the_block_behind(int* words, bool sets) {
  if (sets) words[blockIdx.x] = 1;
  simt::wait_for_value("semaphore_wait", words + (blockIdx.x + 1) % gridDim.x, 1);
  words[blockIdx.x] = 1;
}

TEST_F(Mistake, semaphores_in_a_circle_of_a_cooperative_launch) {
  Device<int> words(std::vector<int>(5));
  EXPECT_EQ(failure_of_cooperative(waits_for_the_block_behind, LaunchConfig{5, 1}, words, true).code, cudaSuccess);
  const Device<int> never(std::vector<int>(5));
  const Failure failure = failure_of_cooperative(waits_for_the_block_behind, LaunchConfig{5, 1}, never, false);
  EXPECT_EQ(failure.code, cudaErrorLaunchTimeout);
  expect_contains(failure.message, "block (0, 0, 0)");
  expect_contains(failure.message, "deadlock: every thread of the block waits: warp 0 waits in semaphore_wait at ");
}

__global__ void waits_for_a_block_that_fails(int* words) {
  if (blockIdx.x == 1) {
    atomicExch(words, 1);
    simt::wait_for_value("semaphore_wait", words + 1, 1);
  } else {
    while (atomicAdd(words, 0) == 0) std::this_thread::yield();
    *static_cast<volatile int*>(nullptr) = 0;
  }
}

TEST_F(Mistake, a_block_that_waits_ends_when_another_fails) {
  const WithSchedule two{{simt::Order::forward, 0, 2}};
  Device<int> words(std::vector<int>{0, 0});
  const Failure failure = failure_of(waits_for_a_block_that_fails, LaunchConfig{2, 1}, words);
  expect_contains(failure.message, "invalid write of a null pointer");
}

__global__ void overlapping_masks() { __syncwarp(threadIdx.x < 16 ? 0x0001ffff : 0xffff8000); }

TEST_F(Mistake, deadlock_of_overlapping_masks) {
  const Failure failure = failure_of(overlapping_masks, LaunchConfig{1, 32});
  expect_contains(failure.message, "deadlock");
  expect_contains(failure.message, "(mask 0x0001ffff; lane 16 of warp 0 waits elsewhere); lanes 16-31 of warp 0 wait");
  expect_contains(failure.message, "(mask 0xffff8000; lane 15 of warp 0 waits elsewhere)");
}

constexpr int shuffle_line = __LINE__ + 3;
__global__ void shuffle_from_returned_lane(float* out) {
  if (threadIdx.x >= 20) return;
  out[threadIdx.x] = __shfl_xor_sync(0xffffffff, 1.0f, 16);
}

TEST_F(Mistake, shuffle_from_a_lane_that_returned) {
  Device<float> out(32);
  const Failure failure = failure_of(shuffle_from_returned_lane, LaunchConfig{1, 32}, out);
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "thread (4, 0, 0), at " + at_line(shuffle_line));
  expect_contains(
      failure.message,
      "__shfl_xor_sync reads the value of lane 20, which is not at this shuffle: it has returned without "
      "it, as a lane does that leaves a loop early or skips a branch; every lane that is read must come to the "
      "same shuffle");
  expect_contains(failure_of(shuffle_from_returned_lane, LaunchConfig{1, 20}, out).message,
                  "lane 20, which is not at this shuffle: the block has no such thread");
}

constexpr int elsewhere_line = __LINE__ + 5;
__global__ void shuffle_from_a_lane_elsewhere(float* out, unsigned mask) {
  if (threadIdx.x < 16)
    out[threadIdx.x] = __shfl_sync(mask, 1.0f, 16);
  else
    __syncthreads();
}

TEST_F(Mistake, shuffle_from_a_lane_that_is_elsewhere) {
  Device<float> out(32);
  const std::string read = "__shfl_sync reads the value of lane 16, which is not at this shuffle: ";
  expect_contains(failure_of(shuffle_from_a_lane_elsewhere, LaunchConfig{1, 32}, out, 0x0000ffffu).message,
                  read + "the mask 0x0000ffff does not name it; ");
  const Failure waits = failure_of(shuffle_from_a_lane_elsewhere, LaunchConfig{1, 32}, out, 0x0001ffffu);
  expect_contains(waits.message,
                  "(mask 0x0001ffff; lane 16 of warp 0 waits elsewhere); lanes 16-31 of warp 0 wait in "
                  "__syncthreads at " +
                      at_line(elsewhere_line));
}

constexpr int collective_line = __LINE__ + 3;
__global__ void collective_without_a_lane() {
  if (threadIdx.x == 7) return;
  simt::warp_collective("mma", 0xffffffff, nullptr, nullptr);
}

TEST_F(Mistake, collective_that_a_lane_never_comes_to) {
  const Failure failure = failure_of(collective_without_a_lane, LaunchConfig{1, 32});
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "at " + at_line(collective_line));
  expect_contains(failure.message,
                  "mma waits for lanes that never come: lanes 0-6, 8-31 of warp 0 wait (mask 0xffffffff; "
                  "lane 7 of warp 0 has returned)");
  expect_contains(failure_of(collective_without_a_lane, LaunchConfig{1, 20}).message,
                  "(mask 0xffffffff; lane 7 of warp 0 has returned; lanes 20-31 of warp 0 are not in the block)");
}

constexpr int different_line = __LINE__ + 2;
__global__ void different_collectives(float* out) {
  if (threadIdx.x < 4) __syncwarp();
  out[threadIdx.x] = __shfl_sync(0xffffffff, 1.0f, 0);
}

TEST_F(Mistake, different_collectives_in_one_warp) {
  Device<float> out(32);
  const WithSchedule schedule({simt::Order::forward, 0, 1});
  const Failure failure = failure_of(different_collectives, LaunchConfig{1, 32}, out);
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "thread (4, 0, 0), at " + at_line(different_line + 1));
  expect_contains(failure.message,
                  "lane 4 calls __shfl_sync with mask 0xffffffff, while lanes 0-3 of that mask wait "
                  "in __syncwarp at " +
                      at_line(different_line) + "; all lanes that a mask names must come to the same call");
}

__global__ void different_shuffles(float* out) {
  out[threadIdx.x] = threadIdx.x < 4 ? __shfl_sync(0xffffffff, 1.0f, 0) : __shfl_xor_sync(0xffffffff, 1.0f, 1);
}

__global__ void different_shapes_of_a_collective() {
  if (threadIdx.x < 4)
    simt::warp_collective("mma", 0xffffffff, nullptr, [](void* const*, unsigned) {});
  else
    simt::warp_collective("mma", 0xffffffff, nullptr, [](void* const*, unsigned mask) { printf("%u\n", mask); });
}

TEST_F(Mistake, collectives_that_differ_in_their_name_or_in_what_they_compute) {
  Device<float> out(32);
  expect_contains(failure_of(different_shuffles, LaunchConfig{1, 32}, out).message, "the lanes of a warp have parted");
  expect_contains(failure_of(different_shapes_of_a_collective, LaunchConfig{1, 32}).message,
                  "the lanes of a warp have parted");
}

constexpr int mask_line = __LINE__ + 1;
__global__ void foreign_mask() { __syncwarp(0x0000ffff); }

TEST_F(Mistake, mask_without_the_own_lane) {
  const WithSchedule schedule({simt::Order::reverse, 0, 1});
  const Failure failure = failure_of(foreign_mask, LaunchConfig{1, 32});
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "thread (31, 0, 0), at " + at_line(mask_line));
  expect_contains(failure.message, "__syncwarp with mask 0x0000ffff, which does not name the calling lane 31");
}

// ---- the thread itself

[[gnu::noinline]] int recursion(int depth) {
  volatile char frame[1000];
  frame[depth % 1000] = 1;
  return depth == 0 ? 0 : recursion(depth - 1) + frame[depth % 1000];
}
__global__ void deep(int* out, int depth) { *out = recursion(depth); }

TEST_F(Mistake, stack_overflow) {
  Device<int> out(1);
  const Failure failure = failure_of(deep, LaunchConfig{1, 1}, out, 1000);
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "thread (0, 0, 0)");
  expect_contains(failure.message, "stack overflow");
  EXPECT_EQ(failure_of(deep, LaunchConfig{1, 1}, out, 50).code, cudaSuccess);
}

__global__ void throws() { throw std::runtime_error("of its own"); }
__global__ void throws_a_number() { throw 1; }
__global__ void catches(int* out) {
  try {
    __syncthreads();
    throw std::runtime_error("caught");
  } catch (const std::exception&) {
    out[threadIdx.x] = 1;
  }
  __syncthreads();
}

TEST_F(Mistake, exception) {
  const Failure failure = failure_of(throws, LaunchConfig{2, 64});
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "kernel throws, block (");
  expect_contains(failure.message, "the kernel threw an exception: of its own");
  expect_contains(failure_of(throws_a_number, LaunchConfig{1, 1}).message, "the kernel threw an exception");
  Device<int> out(64);
  launch(catches, {1, 64}, out);
  EXPECT_EQ(out.values(), std::vector<int>(64, 1));
}

__global__ void launches_a_kernel(float* x) { launch(fill, {1, 32}, x, 32); }

TEST_F(Mistake, launch_from_inside_a_kernel) {
  Device<float> x(32);
  const Failure failure = failure_of(launches_a_kernel, LaunchConfig{1, 1}, x);
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "kernel fill: launched from inside a kernel");
}

// ---- shared memory

__global__ void write_shared(int i) { dynamic_shared<char>()[i] = 1; }

TEST_F(Mistake, dynamic_shared_memory_out_of_bounds) {
  const Failure failure = failure_of(write_shared, LaunchConfig{1, 1, 1024}, 1030);
  EXPECT_EQ(failure.code, cudaErrorIllegalAddress);
  expect_contains(failure.message,
                  "invalid write at byte 1030, 6 bytes past the end of the 1024 bytes of dynamic "
                  "shared memory of this block");
}

TEST_F(Mistake, too_much_dynamic_shared_memory) {
  EXPECT_EQ(failure_of(write_shared, LaunchConfig{1, 1, 227 * 1024}, 0).code, cudaSuccess);
  const Failure failure = failure_of(write_shared, LaunchConfig{1, 1, 227 * 1024 + 1}, 0);
  EXPECT_EQ(failure.code, cudaErrorInvalidValue);
  expect_contains(failure.message,
                  "kernel write_shared: 232449 bytes of dynamic shared memory: a block can have 232448");

  simt::set_max_shared(99 * 1024);  // as on a smaller device
  EXPECT_EQ(failure_of(write_shared, LaunchConfig{1, 1, 99 * 1024}, 0).code, cudaSuccess);
  expect_contains(failure_of(write_shared, LaunchConfig{1, 1, 99 * 1024 + 1}, 0).message,
                  "101377 bytes of dynamic shared memory: a block can have 101376");
  simt::set_max_shared(227 * 1024);
  EXPECT_THROW(simt::set_max_shared(228 * 1024), std::invalid_argument);
}

__global__ void static_and_dynamic() {
  __shared__ int tile[1000];
  tile[threadIdx.x] = 1;
  dynamic_shared<volatile int>()[threadIdx.x] = tile[0];
}

TEST_F(Mistake, static_shared_memory_counts_too) {
  EXPECT_EQ(failure_of(static_and_dynamic, LaunchConfig{1, 1, 227 * 1024 - 4000}).code, cudaSuccess);
  expect_contains(failure_of(static_and_dynamic, LaunchConfig{1, 1, 227 * 1024 - 3999}).message,
                  "228449 bytes of dynamic shared memory and 4000 of static: a block can have 232448");
}

// ---- launch configuration

TEST_F(Mistake, bad_launch_configuration) {
  Device<float> x(32);
  const auto refused = [&](dim3 grid, dim3 block, const std::string& what) {
    const Failure failure = failure_of(fill, LaunchConfig{grid, block}, x, 32);
    EXPECT_EQ(failure.code, cudaErrorInvalidConfiguration);
    expect_contains(failure.message, "kernel fill: " + what);
  };
  refused(1, 0, "block (0, 1, 1)");
  refused(1, 1025, "block (1025, 1, 1)");
  refused(1, {32, 33}, "block (32, 33, 1)");
  refused(1, {1, 1, 65}, "block (1, 1, 65)");
  refused(1, {65536, 65536, 1}, "block (65536, 65536, 1)");
  refused(0, 32, "grid (0, 1, 1)");
  refused({1, 0, 1}, 32, "grid (1, 0, 1)");
  refused({1, 65536, 1}, 32, "grid (1, 65536, 1)");
  refused({1, 1, 65536}, 32, "grid (1, 1, 65536)");
  refused({0x80000000u, 1, 1}, 32, "grid (2147483648, 1, 1)");
}

// ---- around failures

TEST_F(Mistake, names_templates_and_namespaces_as_the_reader_wrote_them) {
  const Failure failure = failure_of(write_at, LaunchConfig{{1, 2}, 32}, nullptr, 0);
  expect_contains(failure.message, "kernel write_at, block (0, 1, 0)");
}

__global__ void every_block_fails(float* x) {
  __syncthreads();
  x[-100000000] = 1;
}

TEST_F(Mistake, failing_again_and_again_on_several_os_threads) {
  const WithSchedule schedule({simt::Order::forward, 0, 4});
  Device<float> x(32);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(failure_of(every_block_fails, LaunchConfig{100, 96}, x).code, cudaErrorIllegalAddress);
    ASSERT_EQ(failure_of(divergent_barrier, LaunchConfig{100, 96}).code, cudaErrorLaunchFailure);
  }
}

TEST_F(Mistake, failing_with_many_waiting_threads_does_not_use_up_stacks) {
  const WithSchedule schedule({simt::Order::forward, 0, 1});
  for (int i = 0; i < 60; ++i)
    ASSERT_EQ(failure_of(divergent_barrier, LaunchConfig{1, 1024}).code, cudaErrorLaunchFailure);
}

TEST_F(Mistake, error_string_is_the_diagnosis_and_the_error_can_be_forgotten) {
  failure_of(divergent_barrier, LaunchConfig{1, 64});
  expect_contains(cudaGetErrorString(cudaErrorLaunchFailure), "barrier divergence");
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(MistakeDeathTest, a_fault_of_the_host_ends_the_process_as_ever) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        expect_usable();
        *const_cast<volatile int*>(static_cast<int*>(nullptr)) = 1;
      },
      testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
