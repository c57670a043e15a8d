// What a correct kernel may rely on: who its threads are, barriers, warp collectives, atomics, cp.async.
#include <numeric>

#include "tests/simt/support.h"

namespace {

__global__ void who(uint3* threads, uint3* blocks) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;
  threads[i] = threadIdx;
  blocks[i] = blockIdx;
}

TEST(Kernel, runs_every_thread_of_every_block_once) {
  const dim3 grid(3, 2, 2), block(5, 4, 3);
  const unsigned total = 12 * 60;
  Device<uint3> threads(total), blocks(total);
  launch(who, {grid, block}, threads, blocks);
  const auto t = threads.values(), b = blocks.values();
  for (unsigned i = 0; i < total; ++i) {
    ASSERT_EQ(t[i].x, i % 5);
    ASSERT_EQ(t[i].y, i / 5 % 4);
    ASSERT_EQ(t[i].z, i % 60 / 20);
    ASSERT_EQ(b[i].x, i / 60 % 3);
    ASSERT_EQ(b[i].y, i / 180 % 2);
    ASSERT_EQ(b[i].z, i / 360);
  }
}

__global__ void reverse_block(int* x) {
  __shared__ int tile[1024];
  const int i = threadIdx.x, n = blockDim.x;
  tile[i] = x[blockIdx.x * n + i];
  __syncthreads();  // tile is complete
  x[blockIdx.x * n + i] = tile[n - 1 - i];
}

TEST(Kernel, barrier_orders_shared_memory_for_any_block_size) {
  for (const int n : {1, 2, 31, 32, 33, 127, 256, 1000, 1024}) {
    std::vector<int> values(3 * n);
    std::iota(values.begin(), values.end(), 0);
    Device<int> x(values);
    launch(reverse_block, {3, unsigned(n)}, x);
    const auto result = x.values();
    for (int i = 0; i < 3 * n; ++i) ASSERT_EQ(result[i], i / n * n + n - 1 - i % n);
  }
}

__global__ void barriers_after_some_returned(int* count) {
  if (threadIdx.x % 3 == 0) return;
  for (int i = 0; i < 10; ++i) {
    if (i == int(threadIdx.x)) return;
    __syncthreads();  // only the line matters
  }
  atomicAdd(count, 1);
}

TEST(Kernel, threads_that_returned_do_not_count_at_a_barrier) {
  Device<int> count(std::vector<int>{0});
  launch(barriers_after_some_returned, {1, 64}, count);
  EXPECT_EQ(count.values()[0], 64 - 22 - 6);  // multiples of 3, then 1, 2, 4, 5, 7, 8
}

__global__ void voting_barriers(int* out) {
  const int i = threadIdx.x;
  for (int round = 0; round < 3; ++round) {
    const int count = __syncthreads_count(i < 10 + round);
    const int all = __syncthreads_and(i < 64 || round == 0);
    const int none = __syncthreads_or(i == 1000);
    const int some = __syncthreads_or(i == 70);
    out[round * 100 + i] = count * 1000 + all * 100 + none * 10 + some;
  }
}

TEST(Kernel, barriers_count_predicates) {
  Device<int> out(300);
  launch(voting_barriers, {1, 100}, out);
  const auto values = out.values();
  for (int i = 0; i < 300; ++i) ASSERT_EQ(values[i], (10 + i / 100) * 1000 + (i / 100 == 0) * 100 + 1);
}

__global__ void shuffles(int* out, double* wide) {
  const int lane = threadIdx.x % 32, i = threadIdx.x;
  out[0 * 64 + i] = __shfl_sync(0xffffffff, i, 5);
  out[1 * 64 + i] = __shfl_sync(0xffffffff, i, 5, 8);
  out[2 * 64 + i] = __shfl_up_sync(0xffffffff, i, 3);
  out[3 * 64 + i] = __shfl_up_sync(0xffffffff, i, 3, 16);
  out[4 * 64 + i] = __shfl_down_sync(0xffffffff, i, 3);
  out[5 * 64 + i] = __shfl_down_sync(0xffffffff, i, 3, 16);
  out[6 * 64 + i] = __shfl_xor_sync(0xffffffff, i, 6);
  out[7 * 64 + i] = __shfl_xor_sync(0xffffffff, i, 12, 8);
  out[8 * 64 + i] = __shfl_sync(0xffffffff, i, lane + 40);  // the source counts modulo the width
  wide[i] = __shfl_xor_sync(0xffffffff, 1.0 / (i + 1), 1);
}

TEST(Kernel, shuffles_read_the_lanes_that_cuda_says) {
  Device<int> out(9 * 64);
  Device<double> wide(64);
  launch(shuffles, {1, 64}, out, wide);
  const auto v = out.values();
  const auto w = wide.values();
  for (int i = 0; i < 64; ++i) {
    const int base = i & 32, lane = i & 31, in8 = i & 7, in16 = i & 15;
    ASSERT_EQ(v[i], base + 5);
    ASSERT_EQ(v[64 + i], i - in8 + 5);
    ASSERT_EQ(v[128 + i], lane < 3 ? i : i - 3);
    ASSERT_EQ(v[192 + i], in16 < 3 ? i : i - 3);
    ASSERT_EQ(v[256 + i], lane + 3 > 31 ? i : i + 3);
    ASSERT_EQ(v[320 + i], in16 + 3 > 15 ? i : i + 3);
    ASSERT_EQ(v[384 + i], i ^ 6);
    ASSERT_EQ(v[448 + i], (lane ^ 12) < lane - in8 + 8 ? i ^ 12 : i);  // an earlier segment may be read
    ASSERT_EQ(v[512 + i], base + (lane + 40) % 32);
    ASSERT_EQ(w[i], 1.0 / ((i ^ 1) + 1));
  }
}

__global__ void votes(unsigned* out) {
  const int lane = threadIdx.x;
  out[lane] = __ballot_sync(0xffffffff, lane % 3 == 0);
  out[32 + lane] = __all_sync(0xffffffff, lane < 32) * 10 + __all_sync(0xffffffff, lane < 31);
  out[64 + lane] = __any_sync(0xffffffff, lane == 31) * 10 + __any_sync(0xffffffff, lane == 32);
}

TEST(Kernel, votes) {
  Device<unsigned> out(96);
  launch(votes, {1, 32}, out);
  const auto v = out.values();
  for (int i = 0; i < 32; ++i) {
    ASSERT_EQ(v[i], 0x49249249u);
    ASSERT_EQ(v[32 + i], 10u);
    ASSERT_EQ(v[64 + i], 10u);
  }
}

__global__ void two_halves(int* out) {
  const int lane = threadIdx.x;
  int v = lane;
  if (lane < 16) {
    for (int offset = 8; offset > 0; offset /= 2) v += __shfl_xor_sync(0x0000ffff, v, offset);
  } else {
    v = __shfl_sync(0xffff0000, v, 20);
    v += __ballot_sync(0xffff0000, lane & 1) == 0xaaaa0000;
  }
  __syncwarp();
  out[lane] = v;
}

TEST(Kernel, parts_of_a_warp_meet_among_themselves) {
  Device<int> out(32);
  launch(two_halves, {1, 32}, out);
  const auto v = out.values();
  for (int i = 0; i < 32; ++i) ASSERT_EQ(v[i], i < 16 ? 120 : 21);
}

__global__ void partial_warp(unsigned* out) {
  if (threadIdx.x >= 20) return;
  __syncwarp();  // names lanes that have returned: CUDA excuses them
  out[threadIdx.x] = __ballot_sync(0xffffffff, 1);
  out[20 + threadIdx.x] = __shfl_down_sync(0xffffffff, threadIdx.x, 1, 4);
  out[40 + threadIdx.x] = __activemask();
}

TEST(Kernel, lanes_that_returned_are_excused_from_votes) {
  Device<unsigned> out(60);
  launch(partial_warp, {1, 25}, out);
  const auto v = out.values();
  for (unsigned i = 0; i < 20; ++i) {
    ASSERT_EQ(v[i], 0xfffffu);
    ASSERT_EQ(v[20 + i], i % 4 == 3 ? i : i + 1);
    ASSERT_EQ(v[40 + i] & 0xfffff, 0xfffffu & v[40 + i]);
  }
}

__global__ void returns_late(unsigned* out) {
  if (threadIdx.x >= 20) {
    __syncwarp(0xfff00000);
    return;  // only now is the vote below complete
  }
  out[threadIdx.x] = __ballot_sync(0xffffffff, 1);
}

TEST(Kernel, a_collective_goes_on_when_the_last_lane_it_waits_for_returns) {
  Device<unsigned> out(20);
  launch(returns_late, {1, 32}, out);
  for (const unsigned lanes : out.values()) ASSERT_EQ(lanes, 0xfffffu);
}

// A thread waits for what one of the next warp writes, and that for the last: none may keep the others from running.
__global__ void values_go_round(int* words) {
  if (threadIdx.x % 32 != 0) return;
  const unsigned warp = threadIdx.x / 32;
  if (warp < 3) simt::wait_for_value("semaphore_wait", words + warp + 1, 7);
  atomicExch(words + warp, 7);
}

TEST(Kernel, a_thread_may_wait_for_what_another_of_its_block_writes) {
  Device<int> words(std::vector<int>(4));
  launch(values_go_round, {1, 128}, words);
  EXPECT_EQ(words.values(), std::vector<int>(4, 7));
}

__global__ void blocks_in_line(int* words, int* order) {
  __shared__ int turn;
  if (threadIdx.x == 0) {
    turn = atomicAdd(words, 1);
    simt::wait_for_value("semaphore_wait", words + 1, turn);
  }
  __syncthreads();
  if (threadIdx.x == 63) order[turn] = words[1];
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(words + 1, turn + 1);
}

TEST(Kernel, blocks_wait_for_those_that_started_before) {
  for (const int threads : {1, 2, 5}) {
    const WithSchedule schedule({simt::Order::reverse, 0, threads});
    Device<int> words(std::vector<int>(2)), order(300);
    launch(blocks_in_line, {300, 64}, words, order);
    const auto values = order.values();
    for (int i = 0; i < 300; ++i) ASSERT_EQ(values[i], i);
  }
}

struct Sum {
  int value;
  int total;
};

__global__ void sum_of_lanes(int* out, unsigned mask) {
  if (!(mask >> threadIdx.x & 1)) return;
  Sum sum = {int(threadIdx.x), 0};
  simt::warp_collective("sum", mask, &sum, [](void* const operands[32], unsigned mask) {
    int total = 0;
    for (int lane = 0; lane < 32; ++lane) {
      if ((operands[lane] != nullptr) != (mask >> lane & 1)) total = -1000000;
      if (mask >> lane & 1) total += static_cast<Sum*>(operands[lane])->value;
    }
    for (int lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1) static_cast<Sum*>(operands[lane])->total = total;
  });
  out[threadIdx.x] = sum.total;
}

TEST(Kernel, a_collective_of_a_wrapper_computes_once_for_all_lanes) {
  Device<int> out(32);
  launch(sum_of_lanes, {1, 32}, out, 0xffffffffu);
  for (const int v : out.values()) ASSERT_EQ(v, 496);
  launch(sum_of_lanes, {1, 32}, out, 0x0000ff00u);
  const auto v = out.values();
  for (int lane = 0; lane < 32; ++lane) ASSERT_EQ(v[lane], lane / 8 == 1 ? 92 : 496);
}

__global__ void atomics(float* f, int* i, unsigned* u) {
  atomicAdd(f, 1.0f);
  atomicAdd(i, 2);
  atomicMax(i + 1, int(blockIdx.x * blockDim.x + threadIdx.x));
  atomicMin(i + 2, -int(threadIdx.x));
  atomicAdd(u, 3u);
  if (atomicCAS(i + 3, 0, 1) == 0) atomicExch(u + 1, 77u);
}

TEST(Kernel, atomics_of_all_blocks_and_os_threads_add_up) {
  const WithSchedule schedule({simt::Order::forward, 0, 4});
  Device<float> f(std::vector<float>{0});
  Device<int> i(std::vector<int>{0, 0, 0, 0});
  Device<unsigned> u(std::vector<unsigned>{0, 0});
  launch(atomics, {500, 64}, f, i, u);
  EXPECT_EQ(f.values()[0], 32000.0f);
  EXPECT_EQ(i.values(), (std::vector<int>{64000, 31999, -63, 1}));
  EXPECT_EQ(u.values(), (std::vector<unsigned>{96000, 77}));
}

__global__ void copies(const int* from, int* out, int pending) {
  int* tile = dynamic_shared<int>();
  simt::cp_async(tile, from, 16, 16);
  simt::cp_async_commit();
  simt::cp_async(tile + 4, from + 4, 16, 8);  // the rest becomes zero
  simt::cp_async_commit();
  simt::cp_async_wait(pending);
  for (int i = 0; i < 8; ++i) out[i] = tile[i];
}

TEST(Kernel, cp_async_copies_at_the_wait_for_its_group) {
  Device<int> from(std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8}), out(8);
  launch(copies, {1, 1, 32}, from, out, 0);
  EXPECT_EQ(out.values(), (std::vector<int>{1, 2, 3, 4, 5, 6, 0, 0}));
  launch(copies, {1, 1, 32}, from, out, 1);
  EXPECT_EQ(out.values(), (std::vector<int>{1, 2, 3, 4, -1, -1, -1, -1}));
  launch(copies, {1, 1, 32}, from, out, 2);
  EXPECT_EQ(out.values(), std::vector<int>(8, -1));
}

// Thread 0 returns with a copy and a group that nobody waits for; the others share its fiber.
__global__ void copies_nobody_waits_for(const int* from, int* out) {
  int* tile = dynamic_shared<int>();
  if (threadIdx.x == 0) {
    simt::cp_async(tile, from, 16, 16);
    simt::cp_async_commit();
  }
  simt::cp_async_wait(0);
  if (threadIdx.x == 0) simt::cp_async(tile + 4, from, 16, 16);  // in no group
  simt::cp_async_wait(0);
  for (int i = 0; i < 8; ++i) out[8 * blockIdx.x + i] = tile[i];
}

TEST(Kernel, cp_async_starts_afresh_in_every_block) {
  const WithSchedule schedule({simt::Order::forward, 0, 1});
  Device<int> from(std::vector<int>{1, 2, 3, 4}), out(16);
  launch(copies_nobody_waits_for, {2, 1, 32}, from, out);
  EXPECT_EQ(out.values(), (std::vector<int>{1, 2, 3, 4, -1, -1, -1, -1, 1, 2, 3, 4, -1, -1, -1, -1}));
}

__global__ void arithmetic(float* out) {
  out[0] = __expf(1.0f);
  out[1] = __logf(2.0f);
  out[2] = __fdividef(1.0f, 4.0f);
  out[3] = exp2f(-INFINITY);
  out[4] = rsqrtf(4.0f);
  out[5] = float(min(3, 2) + max(3u, 2) + min(1.5f, 2.5f));
  out[6] = __uint_as_float(__float_as_uint(1.25f));
  out[7] = fmaxf(-INFINITY, 2.0f);
}

TEST(Kernel, mathematics) {
  Device<float> out(8);
  launch(arithmetic, {1, 1}, out);
  const auto v = out.values();
  EXPECT_FLOAT_EQ(v[0], 2.7182818f);
  EXPECT_FLOAT_EQ(v[1], 0.6931472f);
  EXPECT_EQ(v[2], 0.25f);
  EXPECT_EQ(v[3], 0.0f);
  EXPECT_EQ(v[4], 0.5f);
  EXPECT_EQ(v[5], 6.5f);
  EXPECT_EQ(v[6], 1.25f);
  EXPECT_EQ(v[7], 2.0f);
}

__global__ void says() { printf("thread %d says %.2f\n", threadIdx.x, 0.5f); }

TEST(Kernel, prints) {
  const WithSchedule schedule({simt::Order::forward, 0, 1});
  testing::internal::CaptureStdout();
  launch(says, {1, 2});
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "thread 0 says 0.50\nthread 1 says 0.50\n");
}

TEST(Kernel, meeting_points_outside_a_kernel_are_refused) {
  EXPECT_THROW(__syncthreads(), std::logic_error);
  EXPECT_THROW(__syncwarp(), std::logic_error);
  EXPECT_THROW(simt::dynamic_shared_memory(), std::logic_error);
}

}  // namespace
