// Kernels from elsewhere in the trace preset: every mistake that the engine promises to find in plain CUDA, with its
// line; and what it counts of what no chapter uses.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "simt/trace/counts.h"
#include "tests/simt/support.h"

namespace plain {

namespace cg = cooperative_groups;

std::string at(int line) { return "trace/plain_test.cc:" + std::to_string(line); }

// What <<<>>> leaves behind: the code of the next call, and the whole message.
template <class... P, class... A>
Failure after(void (*kernel)(P...), dim3 grid, dim3 block, A... arguments) {
  simt::launch_by_syntax({grid, block, 1024}, reinterpret_cast<const void*>(kernel),
                 [=] { kernel(arguments...); });
  const cudaError_t code = cudaDeviceSynchronize();
  const Failure failure = {code, cudaGetErrorString(code)};
  cudaDeviceReset();
  cudaGetLastError();
  return failure;
}

void expect_mistake(const Failure& failure, cudaError_t code, const std::string& what, int line) {
  EXPECT_EQ(failure.code, code) << failure.message;
  expect_contains(failure.message, what);
  expect_contains(failure.message, at(line));
}

__global__ void reverse(float* x, int mistake) {
  __shared__ float tile[64];
  const unsigned i = threadIdx.x;
  if (mistake != 1) tile[i] = x[i];
  if (mistake != 2) __syncthreads();
  x[i] = tile[63 - i];  // before the barrier: a race, or nothing has been written
  if (mistake == 3) tile[(i + 1) % 64] = 0;
  if (mistake == 4) x[i + 64] = 0;
  if (mistake == 5) reinterpret_cast<float2*>(x)[0] = reinterpret_cast<float2*>(x + 1)[0];
  if (mistake == 6 && i < 7)
    __syncthreads();
  else if (mistake == 6)
    cg::this_thread_block().sync();
}
constexpr int reads = __LINE__ - 9;

__global__ void adds(int* sums, int words) { atomicAdd(&sums[threadIdx.x % words * 8], 1); }

TEST(Plain, lanes_that_add_to_one_word_take_turns) {
  Device<int> sums(64);
  const auto sectors = [&](int words) {
    simt::trace_begin();
    EXPECT_EQ(after(adds, 1, 32, static_cast<int*>(sums), words).code, cudaSuccess);
    return simt::trace_end().at(0).totals[static_cast<std::size_t>(simt::Op::global_atomic)].units;
  };
  EXPECT_EQ(sectors(8), 8u * 4);      // each word by 4 lanes
  EXPECT_EQ(sectors(5), 5u * 6 + 2);  // two words by 7 lanes, three by 6
  EXPECT_EQ(sectors(1), 1u);          // nvcc adds 32 at once
}

TEST(Plain, every_mistake_has_its_line) {
  Device<float> x(64);
  check(cudaMemset(x, 0, 256));
  EXPECT_EQ(after(reverse, 1, 64, static_cast<float*>(x), 0).code, cudaSuccess);
  const auto with = [&](int mistake) { return after(reverse, 1, 64, static_cast<float*>(x), mistake); };
  const auto launch_failed = cudaErrorLaunchFailure;
  expect_mistake(with(1), launch_failed, "read of 4 bytes of uninitialised shared memory", reads);
  {
    const WithSchedule last_warp_first({.order = simt::Order::reverse});
    expect_mistake(with(2), launch_failed, "read of 4 bytes of uninitialised shared memory", reads);
  }
  expect_mistake(with(3), launch_failed, "race on shared memory: no barrier between", reads + 1);
  expect_mistake(with(4), cudaErrorIllegalAddress,
                 "invalid write at byte 256, 0 bytes past the end of a 256-byte allocation", reads + 2);
  expect_mistake(with(5), cudaErrorMisalignedAddress,
                 "misaligned read: the address of a 8-byte access is not a multiple of 8", reads + 3);
  expect_mistake(with(6), launch_failed, "barrier divergence", reads + 5);
}

__global__ void no_barrier(float* x) {
  __shared__ float tile[64];
  tile[threadIdx.x] = 1;
  tile[threadIdx.x ^ 1] = 2;
  x[threadIdx.x] = tile[threadIdx.x];
}
constexpr int no_barrier_line = __LINE__ - 5;

TEST(Plain, a_missing_barrier_is_a_race) {
  Device<float> x(64);
  expect_mistake(after(no_barrier, 1, 64, static_cast<float*>(x)), cudaErrorLaunchFailure,
                 "race on shared memory: no barrier between", no_barrier_line + 1);
}

// A mistake in inline PTX is one of its line.
__global__ void by_ptx(float* x, bool misaligned) {
  float y;
  simt::ptx(__FILE__, __LINE__, "ld.global.f32 %0, [%1];", simt::ptx_out<'f'>(y),
            simt::ptx_in<'l'>(reinterpret_cast<char*>(x) + (misaligned ? 2 : 256)));
}
constexpr int ptx_line = __LINE__ - 3;

TEST(Plain, mistakes_of_inline_ptx) {
  Device<float> x(64);
  expect_mistake(after(by_ptx, 1, 1, static_cast<float*>(x), true), cudaErrorMisalignedAddress, "ld of 4 bytes",
                 ptx_line);
  expect_contains(after(by_ptx, 1, 1, static_cast<float*>(x), false).message, "0 bytes past the end of a 256-byte");
}

template <class... P, class... A>
simt::LaunchCounts counts_of(void (*kernel)(P...), dim3 grid, dim3 block, A... arguments) {
  simt::trace_begin();
  EXPECT_EQ(after(kernel, grid, block, arguments...).code, cudaSuccess);
  return simt::trace_end().at(0);
}

const simt::Counts& of(const simt::LaunchCounts& launch, simt::Op op) { return launch.totals[static_cast<int>(op)]; }

__device__ float table[64];
__constant__ float weights[4];
const simt::DeviceVariable table_variable{table, simt::DeviceVariable::device};
const simt::DeviceVariable weights_variable{weights, simt::DeviceVariable::constant};

// Lanes that part and meet again, an atomic maximum, a variable and a constant.
__global__ void parts(int* x) {
  const int i = threadIdx.x;
  const int value = x[i];
  int sum = 0;
  if (value % 2 == 0) sum = cg::coalesced_threads().shfl(value, 0);
  atomicMax(x + 32, sum);
  x[i] = sum + int(table[i] + weights[i % 4]);
}

TEST(Plain, lanes_that_part_are_one_request_before_and_after) {
  std::vector<int> numbers(64);
  for (int i = 0; i < 64; ++i) numbers[i] = i;
  Device<int> x(numbers);
  const auto launch = counts_of(parts, 1, 32, static_cast<int*>(x));
  EXPECT_EQ(of(launch, simt::Op::global_load).requests, 2u);  // of x and of the table
  EXPECT_EQ(of(launch, simt::Op::global_load).units, 8u);
  EXPECT_EQ(of(launch, simt::Op::global_store).requests, 1u);
  EXPECT_EQ(of(launch, simt::Op::global_atomic).requests, 1u);
}

// Eight neighbours are read one by one, then one that is not next to the one before.
__global__ void neighbours(float* x) {
  __shared__ __align__(16) float tile[32 * 8];
  for (int i = 0; i < 8; ++i) tile[32 * i + threadIdx.x] = 1;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += tile[8 * threadIdx.x + i];
  for (int i = 0; i < 8; i += 2) sum += tile[8 * threadIdx.x + i];
  for (int i = 0; i < 4; ++i) sum += tile[threadIdx.x + i];
  x[threadIdx.x] = sum;
}

TEST(Plain, neighbours_that_nvcc_may_join) {
  Device<float> x(32);
  const auto launch = counts_of(neighbours, 1, 32, static_cast<float*>(x));
  EXPECT_EQ(of(launch, simt::Op::shared_load).requests, 16u);
  EXPECT_EQ(of(launch, simt::Op::shared_load).neighbours, 6u);
  EXPECT_EQ(of(launch, simt::Op::shared_store).neighbours, 0u);
}

__global__ void moves_by_ptx(float4* x) {
  __shared__ float4 tile[32];
  const unsigned place = simt::shared_address(&tile[threadIdx.x ^ 1]);
  float a, b, c, d;
  simt::ptx(__FILE__, __LINE__, "ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];", simt::ptx_out<'f'>(a),
            simt::ptx_out<'f'>(b), simt::ptx_out<'f'>(c), simt::ptx_out<'f'>(d), simt::ptx_in<'l'>(x + threadIdx.x));
  simt::ptx(__FILE__, __LINE__, "st.shared.v2.f32 [%0 + 8], {%1, %2};", simt::ptx_in<'r'>(place), simt::ptx_in<'f'>(a),
            simt::ptx_in<'f'>(b));
  simt::ptx(__FILE__, __LINE__, "red.global.add.v4.f32 [%0], {%1, %2, %3, %4};", simt::ptx_in<'l'>(x + threadIdx.x),
            simt::ptx_in<'f'>(a), simt::ptx_in<'f'>(b), simt::ptx_in<'f'>(c), simt::ptx_in<'f'>(d));
}

TEST(Plain, inline_ptx_is_counted_like_everything_else) {
  Device<float4> x(std::vector<float4>(32, float4{1, 2, 3, 4}));
  const auto launch = counts_of(moves_by_ptx, 1, 32, static_cast<float4*>(x));
  EXPECT_EQ(of(launch, simt::Op::global_load).requests, 1u);
  EXPECT_EQ(of(launch, simt::Op::global_load).units, 16u);
  EXPECT_EQ(of(launch, simt::Op::shared_store).bytes, 256u);
  EXPECT_EQ(of(launch, simt::Op::shared_store).units, 4u);
  EXPECT_EQ(of(launch, simt::Op::global_atomic).units, 16u);
  EXPECT_EQ(x.values()[5].w, 8);
}

}  // namespace plain
