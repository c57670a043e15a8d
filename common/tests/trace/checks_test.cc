// A kernel for every mistake that the race detector finds, with shared memory or in a dependent launch, and correct
// ones that it must let pass.
#include <algorithm>
#include <memory>

#include "device/cp_async.h"
#include "device/ldmatrix.h"
#include "device/named_barrier.h"
#include "simt/engine/engine.h"
#include "simt/trace/shadow.h"
#include "tests/simt/support.h"

namespace {

std::string at(int line) { return "trace/checks_test.cc:" + std::to_string(line); }

void expect_race(const Failure& failure, int first_line, int second_line) {
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "race on shared memory");
  expect_contains(failure.message, at(first_line));
  expect_contains(failure.message, at(second_line));
}

// Each thread hands its number to the next one.
constexpr int hand_on_line = __LINE__ + 4;
template <class Order>
__global__ void hand_on(float* out, Order order) {
  __shared__ float place[64];
  place[threadIdx.x] = float(threadIdx.x);
  order();
  out[threadIdx.x] = place[(threadIdx.x + 1) % blockDim.x];
}

struct Nothing {
  void operator()() const {}
};
struct Barrier {
  void operator()() const { __syncthreads(); }
};
constexpr int syncwarp_line = __LINE__ + 2;
struct Syncwarp {
  void operator()() const { __syncwarp(); }
};
struct Shuffle {  // orders nothing, in CUDA
  void operator()() const { __shfl_xor_sync(0xffffffff, 1, 1); }
};

TEST(Checks, write_and_read_without_a_barrier) {
  Device<float> out(64);
  expect_race(failure_of(hand_on<Shuffle>, LaunchConfig{1, 64}, out, Shuffle()), hand_on_line, hand_on_line + 2);
  expect_race(failure_of(hand_on<Shuffle>, LaunchConfig{1, 32}, out, Shuffle()), hand_on_line, hand_on_line + 2);
  EXPECT_EQ(failure_of(hand_on<Barrier>, LaunchConfig{1, 64}, out, Barrier()).code, cudaSuccess);
}

TEST(Checks, syncwarp_orders_one_warp_only) {
  Device<float> out(64);
  EXPECT_EQ(failure_of(hand_on<Syncwarp>, LaunchConfig{1, 32}, out, Syncwarp()).code, cudaSuccess);
  // The first warp reads what the second has yet to write.
  expect_contains(failure_of(hand_on<Syncwarp>, LaunchConfig{1, 64}, out, Syncwarp()).message,
                  "read of 4 bytes of uninitialised shared memory");
}

// The first warp writes for the second, by way of a named barrier at which it only arrives, and perhaps writes again.
constexpr int pass_on_line = __LINE__ + 4;
__global__ void pass_on(float* out, bool arrives, bool again) {
  __shared__ float place[32];
  if (threadIdx.x < 32) {
    place[threadIdx.x] = 1;
    if (arrives) named_barrier_arrive(1, 64);
    if (again) place[threadIdx.x] = 2;
  } else {
    if (arrives) named_barrier_sync(1, 64);
    out[threadIdx.x - 32] = place[63 - threadIdx.x];
  }
}

TEST(Checks, named_barrier_orders_what_went_before_an_arrival) {
  Device<float> out(32);
  for (const simt::Order order : {simt::Order::forward, simt::Order::reverse}) {
    const WithSchedule with({.order = order});
    EXPECT_EQ(failure_of(pass_on, LaunchConfig{1, 64}, out, true, false).code, cudaSuccess);
    expect_race(failure_of(pass_on, LaunchConfig{1, 64}, out, true, true), pass_on_line + 2, pass_on_line + 5);
  }
  expect_race(failure_of(pass_on, LaunchConfig{1, 64}, out, false, false), pass_on_line, pass_on_line + 5);
}

constexpr int forgotten_copy = __LINE__ + 3;
__global__ void return_without_waiting(const float4* from) {
  __shared__ float4 place[1];
  cp_async_16(place, from);
  cp_async_commit();
}

TEST(Checks, return_before_a_copy_was_waited_for) {
  Device<float4> from(1);
  const Failure failure = failure_of(return_without_waiting, LaunchConfig{1, 1}, from);
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "the thread returned without having waited for this cp.async");
  expect_contains(failure.message, at(forgotten_copy));
}

__global__ void fill(float4* to) { to[threadIdx.x] = float4{1, 2, 3, 4}; }

// Copies an element before it waits for the kernel before, by way of shared memory or not, and adds to one of `sums`.
constexpr int dependent_line = __LINE__ + 6;
__global__ void before_the_wait(const float4* from, float4* to, float* sums, bool by_cp_async, bool late) {
  __shared__ float4 place[32];
  const int i = threadIdx.x;
  if (late) grid_dependency_wait();
  if (by_cp_async) {
    cp_async_16(place + i, from + i);
    cp_async_commit();
    cp_async_wait<0>();
    to[i] = place[i];
  } else {
    to[i] = from[i];
  }
  atomicAdd(sums + i, 1.0f);
  if (!late) grid_dependency_wait();
}

__global__ void zeros_before_the_wait(const float4* from) {
  __shared__ float4 place[32];
  cp_async_16_or_zero(place + threadIdx.x, from + threadIdx.x, false);  // reads nothing
  cp_async_commit();
  cp_async_wait<0>();
  grid_dependency_wait();
}

TEST(Checks, dependent_launch_that_touches_too_early_what_the_kernel_before_wrote) {
  const std::vector<float4> one(32);
  Device<float4> from(one), to(one);
  Device<float> sums(std::vector<float>(128));
  const auto after_fill = [&](float4* written, bool by_cp_async, bool late) {
    launch(fill, {1, 32}, written);
    return failure_of_dependent(before_the_wait, LaunchConfig{1, 32}, from, to, sums, by_cp_async, late);
  };
  const auto expect_too_early = [](const Failure& failure, const char* what, int line) {
    EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
    expect_contains(failure.message, what);
    expect_contains(failure.message, at(line));
  };
  const std::string wrote = " bytes of global memory that the kernel before wrote, without having waited for it";
  expect_too_early(after_fill(from, true, false), ("read of 16" + wrote).c_str(), dependent_line);
  expect_too_early(after_fill(from, false, false), ("read of 16" + wrote).c_str(), dependent_line + 5);
  expect_too_early(after_fill(to, false, false), ("write of 16" + wrote).c_str(), dependent_line + 5);
  expect_too_early(after_fill(reinterpret_cast<float4*>(static_cast<float*>(sums)), false, false),
                   ("write of 4" + wrote).c_str(), dependent_line + 7);
  for (const bool by_cp_async : {false, true}) EXPECT_EQ(after_fill(from, by_cp_async, true).code, cudaSuccess);
  launch(fill, {1, 32}, from);
  EXPECT_EQ(failure_of_dependent(zeros_before_the_wait, LaunchConfig{1, 32}, from).code, cudaSuccess);
  Device<float4> unrelated(32);
  EXPECT_EQ(after_fill(unrelated, true, false).code, cudaSuccess);
  // The kernel before is the one just before: of those before it everything is there.
  launch(fill, {1, 32}, from);
  EXPECT_EQ(after_fill(unrelated, true, false).code, cudaSuccess);
}

// What has been accessed 16 bytes at a time is divided when single bytes are.
constexpr int bytes_line = __LINE__ + 6;
template <class Order>
__global__ void bytes_of_a_line(uint4* out, Order order) {
  __shared__ uint4 line[2];
  if (threadIdx.x < 2) line[threadIdx.x] = make_uint4(0, 0, 0, 0);
  __syncthreads();
  reinterpret_cast<char*>(line)[threadIdx.x] = char(threadIdx.x);
  order();
  if (threadIdx.x < 2) out[threadIdx.x] = line[1 - threadIdx.x];
}

TEST(Checks, neighbouring_bytes_are_different_places) {
  Device<uint4> out(2);
  EXPECT_EQ(failure_of(bytes_of_a_line<Barrier>, LaunchConfig{1, 32}, out, Barrier()).code, cudaSuccess);
  expect_race(failure_of(bytes_of_a_line<Nothing>, LaunchConfig{1, 32}, out, Nothing()), bytes_line, bytes_line + 2);
}

// Nobody has written yet when the first thread reads: without order this is the other mistake.
TEST(Checks, read_of_what_nobody_wrote) {
  Device<float> out(64);
  const Failure failure = failure_of(hand_on<Nothing>, LaunchConfig{1, 64}, out, Nothing());
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "read of 4 bytes of uninitialised shared memory");
  expect_contains(failure.message, at(hand_on_line + 2));
}

__global__ void two_writers(float* out) {
  __shared__ float place;
  if (threadIdx.x % 32 == 0) place = 1;
  __syncthreads();
  out[threadIdx.x] = place;
}

TEST(Checks, two_writers) {
  Device<float> out(64);
  expect_contains(failure_of(two_writers, LaunchConfig{1, 64}, out).message, "race on shared memory");
  EXPECT_EQ(failure_of(two_writers, LaunchConfig{1, 32}, out).code, cudaSuccess);
}

// The buffer is used again; the barrier before that may be missing.
constexpr int reuse_line = __LINE__ + 6;
__global__ void reuse(float* out, bool second_barrier) {
  __shared__ float place[64];
  place[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = place[63 - threadIdx.x];
  if (second_barrier) __syncthreads();
  if (threadIdx.x < 32) place[threadIdx.x] = 2;  // the first warp's
  __syncthreads();
  out[threadIdx.x] += place[63 - threadIdx.x];
}

TEST(Checks, write_after_read) {
  Device<float> out(64);
  EXPECT_EQ(failure_of(reuse, LaunchConfig{1, 64}, out, true).code, cudaSuccess);
  // Whichever warp goes first, the second finds out: by its read, or by its write.
  expect_contains(failure_of(reuse, LaunchConfig{1, 64}, out, false).message,
                  "and the write of the same memory by thread");
  const WithSchedule reverse({.order = simt::Order::reverse});
  expect_contains(failure_of(reuse, LaunchConfig{1, 64}, out, false).message,
                  "and the read of the same memory by thread");
}

__global__ void neighbours_bytes(char* out) {
  __shared__ char place[64];
  place[threadIdx.x] = 1;  // different bytes of a word
  out[threadIdx.x] = place[threadIdx.x];
}

TEST(Checks, different_bytes_do_not_race) {
  Device<char> out(64);
  EXPECT_EQ(failure_of(neighbours_bytes, LaunchConfig{1, 64}, out).code, cudaSuccess);
}

__global__ void count_up(int* out) {
  __shared__ int place;
  if (threadIdx.x == 0) place = 0;
  __syncthreads();
  atomicAdd(&place, 1);
  __syncthreads();
  if (threadIdx.x == 0) *out = place;
}

TEST(Checks, atomics_do_not_race) {
  Device<int> out(1);
  EXPECT_EQ(failure_of(count_up, LaunchConfig{1, 64}, out).code, cudaSuccess);
  EXPECT_EQ(out.values()[0], 64);
}

enum class Wait { none, before_barrier, after_barrier };

constexpr int copy_line = __LINE__ + 3;
__global__ void copy(float* out, const float4* in, Wait wait) {
  alignas(16) __shared__ float4 place[64];
  cp_async_16(&place[threadIdx.x], &in[threadIdx.x]);
  cp_async_commit();
  if (wait == Wait::before_barrier) cp_async_wait<0>();
  __syncthreads();
  if (wait == Wait::after_barrier) cp_async_wait<0>();
  out[threadIdx.x] = place[63 - threadIdx.x].x;
}

TEST(Checks, read_before_the_wait) {
  Device<float4> in(std::vector<float4>(64));
  Device<float> out(64);
  EXPECT_EQ(failure_of(copy, LaunchConfig{1, 64}, out, in, Wait::before_barrier).code, cudaSuccess);
  const Failure failure = failure_of(copy, LaunchConfig{1, 64}, out, in, Wait::none);
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "of shared memory that a cp.async of thread (63, 0, 0) at " + at(copy_line));
  // A wait is for a thread's own copies.
  EXPECT_EQ(failure_of(copy, LaunchConfig{1, 64}, out, in, Wait::after_barrier).code, cudaErrorLaunchFailure);
}

// Whoever starts a copy and whoever sees it land: it is pending until what it belongs to has completed it.
TEST(Checks, a_copy_belongs_to_what_completes_it) {
  const int first = 0, second = 0;  // two owners
  simt::Shadow shadow;
  shadow.launch_begins(64, 1, 2);
  shadow.block_begins();
  EXPECT_FALSE(shadow.copy_starts(0, 16, 0, nullptr, &first));
  EXPECT_FALSE(shadow.copy_starts(16, 16, 0, nullptr, &second));
  shadow.barrier(0);
  EXPECT_FALSE(shadow.copy_lands(0, 16, 33, nullptr, &first));  // another thread has waited for it
  EXPECT_FALSE(shadow.access(0, 16, 33, simt::Access::read, nullptr));
  shadow.barrier(0);
  const auto mistake = shadow.access(16, 4, 33, simt::Access::read, nullptr);
  ASSERT_TRUE(mistake);
  EXPECT_EQ(mistake->kind, simt::Shadow::Mistake::pending_copy);
  EXPECT_EQ(mistake->other.thread, 0);
  shadow.barrier(0);
  EXPECT_TRUE(shadow.copy_lands(16, 16, 0, nullptr, &first));  // not the one that it belongs to
  EXPECT_FALSE(shadow.copy_lands(16, 16, 0, nullptr, &second));
}

__global__ void ldmatrix_of_nothing(unsigned* out) {
  alignas(16) __shared__ unsigned short place[64];
  uint32_t r[2];
  ldmatrix_x2(r, place + threadIdx.x % 8 * 8);
  out[threadIdx.x] = r[0];
}

TEST(Checks, ldmatrix_reads_shared_memory) {
  Device<unsigned> out(32);
  expect_contains(failure_of(ldmatrix_of_nothing, LaunchConfig{1, 32}, out).message,
                  "read of 16 bytes of uninitialised shared memory");
}

// Lets a kernel write to its own memory and variables alone, as the grader does, and itself writes elsewhere.
class Objects final : public simt::Observer {
 public:
  Objects() { simt::add(*this); }
  ~Objects() { simt::remove(*this); }
  void accessed(const simt::MemoryAccess& access) override {
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    if (access.space == simt::MemoryAccess::elsewhere && simt::writes(access.access) &&
        std::max(access.address, here) - std::min(access.address, here) > simt::stack_bytes)
      simt::worker->fail(cudaErrorIllegalAddress, nullptr, "", "objection");
  }
  void warp_ends(unsigned) override { ended++; }

  int ended = 0;
};

__global__ void to_the_host(int* out) { *out = 1; }
__global__ void fails(const std::string* why) {
  simt::worker->fail(cudaErrorLaunchFailure, &simt::worker->current(), *why, *why);
}

}  // namespace

// The linker takes these, which are traced as all of this file is, for the engine's messages, too.
template std::string std::operator+(const char*, std::string&&);
template std::string std::operator+(std::string&&, std::string&&);
template std::string std::operator+(std::string&&, const char*);
template class std::basic_string<char>;

namespace {

TEST(Checks, what_an_observer_or_a_message_touches_is_no_access_of_the_kernels) {
  const auto objects = std::make_unique<Objects>();
  const auto host = std::make_unique<int>();
  Device<float> out(64);
  EXPECT_EQ(failure_of(hand_on<Barrier>, LaunchConfig{1, 64}, out, Barrier()).code, cudaSuccess);
  EXPECT_EQ(objects->ended, 2);
  expect_contains(failure_of(to_the_host, LaunchConfig{1, 1}, host.get()).message, "objection");
  expect_race(failure_of(hand_on<Shuffle>, LaunchConfig{1, 64}, out, Shuffle()), hand_on_line, hand_on_line + 2);
  const std::string why = "of no reason at all";
  expect_contains(failure_of(fails, LaunchConfig{1, 1}, &why).message, why + ": " + why);
}

// The engine leaves out the wait that the environment names. It reads that once, so each needs a process of its own.
template <class Launches>
void run_without(const std::string& where, const Launches& launches) {
  setenv("SIMT_WITHOUT", where.c_str(), 1);
  const Failure failure = failure_in(launches);
  std::fprintf(stderr, "%s\n", failure.code == cudaSuccess ? "nothing found" : failure.message.c_str());
  std::exit(0);
}

TEST(ChecksDeathTest, without_a_barrier) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto finds = [](int line, const auto& launches, const char* what) {
    EXPECT_EXIT(run_without(at(line), launches), testing::ExitedWithCode(0), what);
  };
  Device<float> out(64), sums(std::vector<float>(32));
  Device<float4> in(std::vector<float4>(64)), to(32);
  const auto by_barrier = [&] { launch(reuse, {1, 64}, out, true); };
  const auto by_syncwarp = [&] { launch(hand_on<Syncwarp>, {1, 32}, out, Syncwarp()); };
  const auto by_named_barrier = [&] { launch(pass_on, {1, 64}, out, true, false); };
  const auto by_copy = [&] { launch(copy, {1, 64}, out, in, Wait::before_barrier); };
  const auto after_fill = [&] {
    launch(fill, {1, 32}, in);
    launch_dependent(before_the_wait, {1, 32}, in, to, sums, true, true);
  };
  finds(reuse_line, by_barrier, "race on shared memory");
  finds(syncwarp_line, by_syncwarp, "uninitialised shared memory");
  finds(pass_on_line + 1, by_named_barrier, "deadlock: .*bar.sync");
  finds(pass_on_line + 4, by_named_barrier, "race on shared memory");
  finds(copy_line + 2, by_copy, "that a cp.async of thread");
  finds(dependent_line - 2, after_fill, "that the kernel before wrote");

  finds(reuse_line + 1, by_barrier, "nothing found");
  for (const std::string file : {"trace/checks.cc", "checks_test.cc", "tests/trace/checks_test.cc"})
    EXPECT_EXIT(run_without(file + ":" + std::to_string(reuse_line), by_barrier), testing::ExitedWithCode(0),
                "nothing found");
}

}  // namespace
