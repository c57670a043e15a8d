// Counts of kernels that are small enough to count by hand; those of Nsight Compute on an H200 where it says so.
#include "simt/trace/counts.h"

#include "device/atomic_add.h"
#include "device/bulk_copy.h"
#include "device/cp_async.h"
#include "device/mbarrier.h"
#include "device/mma.h"
#include "device/numeric.h"
#include "device/semaphore.h"
#include "tests/simt/support.h"

namespace {

using simt::Op;

template <class... Args>
simt::LaunchCounts counts_of(Args&&... args) {
  simt::trace_begin();
  launch(std::forward<Args>(args)...);
  const auto launches = simt::trace_end();
  EXPECT_EQ(launches.size(), 1u);
  return launches.at(0);
}

void expect(const simt::LaunchCounts& launch, Op op, uint64_t requests, uint64_t units, uint64_t ideal) {
  const simt::Counts& counts = launch.totals[int(op)];
  EXPECT_EQ(counts.requests, requests) << simt::name(op);
  EXPECT_EQ(counts.units, units) << simt::name(op);
  EXPECT_EQ(counts.ideal, ideal) << simt::name(op);
}

template <class T>
__global__ void copy(T* to, const T* from, int stride, int offset) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i * stride + offset];
}

TEST(Counts, copies) {
  Device<float> from(8 * 1024 + 8), to(1024);
  const auto plain = counts_of(copy<float>, LaunchConfig{4, 256}, to, from, 1, 0);
  expect(plain, Op::global_load, 32, 128, 128);  // a warp's 128 bytes are 4 sectors
  expect(plain, Op::global_store, 32, 128, 128);
  const auto strided = counts_of(copy<float>, LaunchConfig{4, 256}, to, from, 8, 0);
  expect(strided, Op::global_load, 32, 1024, 128);  // a sector each
  const auto shifted = counts_of(copy<float>, LaunchConfig{4, 256}, to, from, 1, 1);
  expect(shifted, Op::global_load, 32, 160, 128);  // one more
  Device<float4> wide_from(1024), wide_to(1024);
  const auto wide = counts_of(copy<float4>, LaunchConfig{4, 256}, wide_to, wide_from, 1, 0);
  expect(wide, Op::global_load, 32, 512, 512);
}

TEST(Counts, bytes_at_three_levels) {
  Device<float> from(1024), to(1024);
  // Stride 0: all of the launch's 1024 threads read one float, and write one each.
  const auto launch = counts_of(copy<float>, LaunchConfig{4, 256}, to, from, 0, 0);
  EXPECT_EQ(launch.read.warps, 32u * 32);  // a sector for each of 32 warps
  EXPECT_EQ(launch.read.blocks, 4u * 32);
  EXPECT_EQ(launch.read.launch, 32u);
  EXPECT_EQ(launch.written.warps, 4096u);
  EXPECT_EQ(launch.written.blocks, 4096u);
  EXPECT_EQ(launch.written.launch, 4096u);
}

constexpr int store_line = __LINE__ + 4;
template <int width>
__global__ void transpose(float* to, const float* from) {
  __shared__ float tile[32][width];
  tile[threadIdx.y][threadIdx.x] = from[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  to[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

TEST(Counts, transpose_with_and_without_padding) {
  Device<float> from(std::vector<float>(1024, 1.0f)), to(1024);
  const auto conflicts = counts_of(transpose<32>, LaunchConfig{1, dim3(32, 32)}, to, from);
  expect(conflicts, Op::shared_store, 32, 32, 32);
  expect(conflicts, Op::shared_load, 32, 1024, 32);  // a column is one bank: as Nsight Compute has it
  EXPECT_EQ(conflicts.barriers, 1u);
  const auto padded = counts_of(transpose<33>, LaunchConfig{1, dim3(32, 32)}, to, from);
  expect(padded, Op::shared_load, 32, 32, 32);

  ASSERT_EQ(padded.lines.size(), 4u);
  for (const auto& line : padded.lines)
    EXPECT_EQ(
        line.line,
        "trace/counts_test.cc:" +
            std::to_string(line.op == Op::shared_store || line.op == Op::global_load ? store_line : store_line + 2));
}

__global__ void every_other_lane(float* to, const float* from) {
  if (threadIdx.x % 2 == 0) to[threadIdx.x] = from[threadIdx.x];
}

TEST(Counts, only_lanes_that_take_part) {
  Device<float> from(32), to(32);
  const auto launch = counts_of(every_other_lane, LaunchConfig{1, 32}, to, from);
  expect(launch, Op::global_load, 1, 4, 2);
  EXPECT_EQ(launch.totals[int(Op::global_load)].bytes, 64u);
}

// Lanes leave a loop at different times: the n-th iteration of all is one request.
__global__ void triangle(float* to, const float* from) {
  float sum = 0;
  for (int i = 0; i <= int(threadIdx.x); i++) sum += from[i];
  to[threadIdx.x] = sum;
}

TEST(Counts, loops_of_different_length) {
  Device<float> from(32), to(32);
  expect(counts_of(triangle, LaunchConfig{1, 32}, to, from), Op::global_load, 32, 32, 32);
}

constexpr int update_line = __LINE__ + 4;
__global__ void updates(float* sums, int* semaphore) {
  const float x[4] = {1, 2, 3, 4};
  atomicAdd(sums + threadIdx.x, 1.0f);
  atomic_add_4(sums + 4 * threadIdx.x, x);
  if (threadIdx.x == 0) semaphore_set(semaphore, semaphore_peek(semaphore) + 1);
}

// However the CPU carries them out; and a semaphore is looked at and set by an ordinary load and store.
TEST(Counts, an_atomic_update_is_one_request) {
  Device<float> sums(std::vector<float>(128, 0.0f));
  Device<int> semaphore(std::vector<int>(1, 0));
  const auto launch = counts_of(updates, LaunchConfig{1, 32}, sums, semaphore);
  expect(launch, Op::global_atomic, 2, 4 + 16, 4 + 16);
  expect(launch, Op::global_load, 1, 1, 1);
  expect(launch, Op::global_store, 1, 1, 1);
  int found = 0;
  for (const auto& line : launch.lines)
    for (int n = 0; n < 2; n++) found += line.line == "trace/counts_test.cc:" + std::to_string(update_line - 1 + n);
  EXPECT_EQ(found, 2);
}

constexpr int difference_line = __LINE__ + 7;
__global__ void differences(float* to, const __half* x, const __half* y, int n) {
  const int lane = threadIdx.x;
  for (int j = 0; j < n; ++j) {
    const __half* y_row = y + int64_t(j) * n;
    float most = 0;
    // of rows that a warp shares
    for (int d = lane; d < n; d += 32) most = fmaxf(to_float(x[d]) - to_float(y_row[d]), most);
    to[32 * j + lane] = most;
  }
}

TEST(Counts, an_argument_is_loaded_on_its_own_line) {
  Device<__half> x(64), y(64 * 64);
  Device<float> to(64 * 32);
  for (const auto& line : counts_of(differences, LaunchConfig{1, 32}, to, x, y, 64).lines)
    if (line.op == Op::global_load) {
      EXPECT_EQ(line.line, "trace/counts_test.cc:" + std::to_string(difference_line));
    }
}

__global__ void clear(float4* to) { to[threadIdx.x] = make_float4(0, 0, 0, 0); }

TEST(Counts, a_vector_of_constants_is_stored_whole) {
  Device<float4> to(32);
  expect(counts_of(clear, LaunchConfig{1, 32}, to), Op::global_store, 1, 16, 16);
}

// A product before any copy, two while one is on its way, and one after the wait, if there is a wait.
__global__ void products_beside_a_copy(const float4* from, bool waits) {
  float4* to = dynamic_shared<float4>();
  uint32_t a[4] = {}, b[2] = {};
  float c[4] = {};
  mma_m16n8k16<__half>(c, a, b);
  cp_async_16(to + threadIdx.x, from + threadIdx.x);
  cp_async_commit();
  mma_m16n8k16<__half>(c, a, b);
  mma_m16n8k16<__half>(c, a, b);
  if (waits) cp_async_wait<0>();
  mma_m16n8k16<__half>(c, a, b);
  cp_async_wait<0>();
}

TEST(Counts, products_while_no_copy_is_on_its_way) {
  constexpr std::uint64_t product = 2 * 16 * 8 * 16;
  Device<float4> from(32);
  for (const bool waits : {false, true}) {
    const auto launch = counts_of(products_beside_a_copy, LaunchConfig{3, 32, 32 * sizeof(float4)}, from, waits);
    EXPECT_EQ(launch.matrix_flops, 3 * 4 * product);
    ASSERT_TRUE(launch.matrix_flops_alone);
    EXPECT_EQ(*launch.matrix_flops_alone, 3 * (waits ? 2 : 1) * product);
  }
  Device<float> a(32), b(32);
  EXPECT_FALSE(counts_of(copy<float>, LaunchConfig{1, 32}, a, b, 1, 0).matrix_flops_alone);
}

// One warp copies for all of them, between products or before or behind them, and waits for it at the end.
__global__ void products_beside_a_warps_copy(const float4* from, unsigned copies, bool before, bool behind) {
  float4* to = dynamic_shared<float4>();
  const unsigned warp = threadIdx.x / 32;
  uint32_t a[4] = {}, b[2] = {};
  float c[4] = {};
  __syncthreads();
  if (before) mma_m16n8k16<__half>(c, a, b);
  if (warp == copies) {
    cp_async_16(to + threadIdx.x % 32, from + threadIdx.x % 32);
    cp_async_commit();
  }
  if (behind) mma_m16n8k16<__half>(c, a, b);
  if (warp == copies) cp_async_wait<0>();
  __syncthreads();
  mma_m16n8k16<__half>(c, a, b);
}

TEST(Counts, products_beside_a_copy_whichever_warp_has_started_it) {
  constexpr std::uint64_t product = 2 * 16 * 8 * 16;
  Device<float4> from(32);
  const auto alone = [&](unsigned warp, bool before, bool behind) {
    const LaunchConfig two_blocks = {2, 96, 32 * sizeof(float4)};
    return counts_of(products_beside_a_warps_copy, two_blocks, from, warp, before, behind).matrix_flops_alone.value();
  };
  for (unsigned warp = 0; warp < 3; warp++) {
    EXPECT_EQ(alone(warp, false, true), 2 * 3 * product);
    EXPECT_EQ(alone(warp, true, false), 2 * 6 * product);
    EXPECT_EQ(alone(warp, true, true), 2 * 8 * product);
  }
}

// A copy that is waited for at once, and one beside a product; in two warps.
__global__ void copies_and_a_product(const float4* from) {
  float4* to = dynamic_shared<float4>();
  uint32_t a[4] = {}, b[2] = {};
  float c[4] = {};
  mma_m16n8k16<__half>(c, a, b);
  __syncthreads();
  cp_async_16(to + threadIdx.x, from + threadIdx.x);
  cp_async_commit();
  cp_async_wait<0>();
  cp_async_16(to + threadIdx.x, from + threadIdx.x);
  cp_async_commit();
  __syncthreads();
  mma_m16n8k16<__half>(c, a, b);
  __syncthreads();
  cp_async_wait<0>();
}

TEST(Counts, copies_that_land_before_a_product_has_run) {
  Device<float4> from(64);
  const auto launch = counts_of(copies_and_a_product, LaunchConfig{3, 64, 64 * sizeof(float4)}, from);
  EXPECT_EQ(launch.for_exercises.copies_alone, 3 * 64u);
}

// The same beside a bulk copy, which has landed when the threads have waited for its mbarrier.
__global__ void products_beside_a_bulk_copy(const float4* from, bool waits) {
  float4* to = dynamic_shared<float4>();
  Mbarrier* full = reinterpret_cast<Mbarrier*>(to + 32);
  uint32_t a[4] = {}, b[2] = {};
  float c[4] = {};
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  mma_m16n8k16<__half>(c, a, b);
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(full, 32 * sizeof(float4));
    bulk_load(to, from, 32 * sizeof(float4), full);
  }
  __syncwarp();
  mma_m16n8k16<__half>(c, a, b);
  mma_m16n8k16<__half>(c, a, b);
  if (waits) mbarrier_wait(full, 0);
  mma_m16n8k16<__half>(c, a, b);
  mbarrier_wait(full, 0);
}

TEST(Counts, products_while_no_bulk_copy_is_on_its_way) {
  constexpr std::uint64_t product = 2 * 16 * 8 * 16;
  Device<float4> from(32);
  for (const bool waits : {false, true}) {
    const auto launch = counts_of(products_beside_a_bulk_copy, LaunchConfig{3, 32, 33 * sizeof(float4)}, from, waits);
    EXPECT_EQ(launch.matrix_flops, 3 * 4 * product);
    ASSERT_TRUE(launch.matrix_flops_alone);
    EXPECT_EQ(*launch.matrix_flops_alone, 3 * (waits ? 2 : 1) * product);
  }
}

TEST(Counts, only_between_begin_and_end) {
  Device<float> from(32), to(32);
  simt::trace_begin();
  EXPECT_TRUE(simt::trace_end().empty());
  launch(every_other_lane, {1, 32}, to, from);
  simt::trace_begin();
  EXPECT_TRUE(simt::trace_end().empty());
  EXPECT_TRUE(simt::trace_end().empty());
}

TEST(Counts, for_each_pair_around_the_launch) {
  Device<float> from(32), to(32);
  simt::trace_begin();
  simt::trace_begin();
  launch(every_other_lane, {1, 32}, to, from);
  EXPECT_EQ(simt::trace_end().size(), 1u);
  launch(every_other_lane, {1, 32}, to, from);
  EXPECT_EQ(simt::trace_end().size(), 2u);
}

}  // namespace
