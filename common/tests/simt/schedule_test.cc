// The orders in which the engine runs blocks, warps and lanes, and the OS threads that share the grid.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>
#include <tuple>

#include "device/semaphore.h"
#include "tests/simt/support.h"

namespace {

__global__ void note_order(int* next, int* threads, int* blocks) {
  const int i = atomicAdd(next, 1);
  threads[i] = threadIdx.x;
  blocks[i] = blockIdx.x;
}

// The numbers in the order in which the engine reached them.
struct Seen {
  std::vector<int> threads, blocks;
};

Seen order(const simt::Schedule& schedule, int grid, int block) {
  const WithSchedule with(schedule);
  Device<int> next(std::vector<int>{0}), threads(grid * block), blocks(grid * block);
  launch(note_order, {unsigned(grid), unsigned(block)}, next, threads, blocks);
  return {threads.values(), blocks.values()};
}

TEST(Schedule, forward) {
  const Seen seen = order({simt::Order::forward, 0, 1}, 4, 70);
  for (int i = 0; i < 280; ++i) {
    ASSERT_EQ(seen.threads[i], i % 70);
    ASSERT_EQ(seen.blocks[i], i / 70);
  }
}

TEST(Schedule, reverse) {
  const Seen seen = order({simt::Order::reverse, 0, 1}, 4, 70);
  for (int i = 0; i < 280; ++i) {
    ASSERT_EQ(seen.threads[i], 69 - i % 70);
    ASSERT_EQ(seen.blocks[i], 3 - i / 70);
  }
}

TEST(Schedule, shuffled_runs_everything_once_warp_by_warp_and_by_its_seed_alone) {
  std::set<std::vector<int>> orders;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Seen seen = order({simt::Order::shuffled, seed, 1}, 50, 70);
    const Seen again = order({simt::Order::shuffled, seed, 1}, 50, 70);
    EXPECT_EQ(seen.threads, again.threads);
    EXPECT_EQ(seen.blocks, again.blocks);
    orders.insert(seen.threads);
    orders.insert(seen.blocks);
    std::set<std::pair<int, int>> all;
    int warps = 0;
    for (int i = 0; i < 3500; ++i) {
      all.emplace(seen.blocks[i], seen.threads[i]);
      warps += i == 0 || seen.threads[i] / 32 != seen.threads[i - 1] / 32 || seen.blocks[i] != seen.blocks[i - 1];
    }
    EXPECT_EQ(all.size(), 3500u);
    EXPECT_EQ(warps, 150);
  }
  EXPECT_EQ(orders.size(), 6u);
}

__global__ void note_order_after_barrier(int* next, int* threads) {
  __syncthreads();
  threads[atomicAdd(next, 1)] = threadIdx.x;
}

TEST(Schedule, starts_over_after_a_barrier) {
  const WithSchedule with({simt::Order::forward, 0, 1});
  Device<int> next(std::vector<int>{0}), threads(70);
  launch(note_order_after_barrier, {1, 70}, next, threads);
  const auto seen = threads.values();
  for (int i = 0; i < 70; ++i) ASSERT_EQ(seen[i], i);
}

// Reads its neighbour's element without a barrier: right in one order only.
__global__ void racing_neighbours(int* out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

TEST(Schedule, a_missing_barrier_reads_poison) {
  for (const simt::Order order : {simt::Order::forward, simt::Order::reverse, simt::Order::shuffled}) {
    const WithSchedule with({order, 5, 1});
    Device<int> out(64);
    launch(racing_neighbours, {1, 64}, out);
    const auto values = out.values();
    EXPECT_EQ(std::count(values.begin(), values.end(), -1), 32);
  }
}

// Sums of a block by a tree in shared memory, then of the warps by shuffles.
__global__ void block_sums(const int* x, int* sums) {
  __shared__ int partial[256];
  const int i = threadIdx.x;
  partial[i] = x[blockIdx.x * 256 + i];
  for (int half = 128; half >= 32; half /= 2) {
    __syncthreads();  // the sums of the round before are there
    if (i < half) partial[i] += partial[i + half];
  }
  if (i >= 32) return;
  __syncwarp();
  int sum = partial[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (i == 0) sums[blockIdx.x] = sum;
}

TEST(Schedule, a_correct_kernel_gives_one_result_in_every_order_on_any_number_of_os_threads) {
  std::vector<int> values(100 * 256);
  for (size_t i = 0; i < values.size(); ++i) values[i] = int(i * 2654435761u >> 20);
  Device<int> x(values);
  std::vector<int> expected(100);
  for (size_t i = 0; i < values.size(); ++i) expected[i / 256] += values[i];
  for (const simt::Order order : {simt::Order::forward, simt::Order::reverse, simt::Order::shuffled})
    for (const int threads : {1, 2, 3, 8})
      for (const std::uint64_t seed : {1, 2}) {
        const WithSchedule with({order, seed, threads});
        Device<int> sums(100);
        launch(block_sums, {100, 256}, x, sums);
        ASSERT_EQ(sums.values(), expected);
      }
}

// Each block adds to the sum of the block before it, or should.
__global__ void sums_in_turn(int* turn, int* sum, bool waits) {
  __syncthreads();
  if (threadIdx.x == 0) {
    if (waits) semaphore_wait(turn, int(blockIdx.x));
    *sum = (31 * *sum + int(blockIdx.x)) % 10007;
    semaphore_set(turn, int(blockIdx.x) + 1);
  }
  __syncthreads();
}

TEST(Schedule, a_block_that_does_not_wait_for_its_turn_is_too_early_in_one_order) {
  int expected = 0;
  for (int block = 0; block < 40; ++block) expected = (31 * expected + block) % 10007;
  for (const auto& [order, waits, right] :
       {std::tuple(simt::Order::forward, true, true), std::tuple(simt::Order::forward, false, true),
        std::tuple(simt::Order::last_first, true, true), std::tuple(simt::Order::last_first, false, false)}) {
    const WithSchedule with({order, 0, 1});
    Device<int> turn(std::vector<int>{0}), sum(std::vector<int>{0});
    launch(sums_in_turn, {40, 64}, turn, sum, waits);
    EXPECT_EQ(sum.values()[0] == expected, right) << "order " << int(order) << (waits ? "" : ", without waiting");
  }
}

__global__ void note_os_thread(std::thread::id* ids) {
  for (int i = 0; i < 50; ++i) __syncthreads();
  ids[blockIdx.x * blockDim.x + threadIdx.x] = std::this_thread::get_id();
}

TEST(Schedule, a_block_stays_on_its_os_thread) {
  const WithSchedule with({simt::Order::forward, 0, 4});
  Device<std::thread::id> ids(2000 * 32);
  launch(note_os_thread, {2000, 32}, ids);
  const auto seen = ids.values();
  std::set<std::thread::id> all;
  for (size_t i = 0; i < seen.size(); ++i) {
    ASSERT_EQ(seen[i], seen[i / 32 * 32]);
    all.insert(seen[i]);
  }
  EXPECT_GT(all.size(), 1u);
  EXPECT_LE(all.size(), 4u);
}

TEST(Schedule, launches_of_several_host_threads_take_turns) {
  std::vector<int> values(100 * 256, 1);
  Device<int> x(values);
  std::vector<std::thread> hosts;
  std::atomic<int> wrong = 0;
  for (int host = 0; host < 4; ++host)
    hosts.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        Device<int> sums(100);
        launch(block_sums, {100, 256}, x, sums);
        wrong += sums.values() != std::vector<int>(100, 256);
      }
    });
  for (auto& host : hosts) host.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Schedule, number_of_threads_is_checked) {
  EXPECT_THROW(simt::set_schedule({simt::Order::forward, 0, 0}), std::invalid_argument);
  EXPECT_THROW(simt::set_schedule({simt::Order::forward, 0, 257}), std::invalid_argument);
}

// The environment is read once, so each of these needs a process of its own.
void with_environment(const char* name, const char* value) {
  setenv(name, value, 1);
  const simt::Schedule s = simt::schedule();
  std::fprintf(stderr, "order %d seed %d threads %d\n", int(s.order), int(s.seed), s.threads);
  std::exit(0);
}

TEST(ScheduleDeathTest, environment) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  using testing::ExitedWithCode;
  EXPECT_EXIT(with_environment("SIMT_THREADS", "3"), ExitedWithCode(0), "threads 3");
  EXPECT_EXIT(with_environment("SIMT_ORDER", "forward"), ExitedWithCode(0), "order 0");
  EXPECT_EXIT(with_environment("SIMT_ORDER", "reverse"), ExitedWithCode(0), "order 1");
  EXPECT_EXIT(with_environment("SIMT_ORDER", "shuffled:42"), ExitedWithCode(0), "order 2 seed 42");
  EXPECT_EXIT(with_environment("SIMT_ORDER", "last_first"), ExitedWithCode(0), "order 3");
  EXPECT_EXIT(with_environment("SIMT_THREADS", "0"), ExitedWithCode(2), "SIMT_THREADS=0: must be 1 to 256");
  EXPECT_EXIT(with_environment("SIMT_THREADS", "two"), ExitedWithCode(2), "SIMT_THREADS=two: must be");
  EXPECT_EXIT(with_environment("SIMT_ORDER", "shuffled"), ExitedWithCode(2), "SIMT_ORDER=shuffled: must be forward");
  EXPECT_EXIT(with_environment("SIMT_ORDER", "backward"), ExitedWithCode(2), "SIMT_ORDER=backward: must be forward");
}

}  // namespace
